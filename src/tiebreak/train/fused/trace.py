"""A step of many runs, traced as one graph of tensor operations.

`vmap` and `grad` transform a function anew at every call. Traced once, the result is a plain list of operations on
stacked tensors, which runs without them: on a CPU as it is, on a GPU rewritten (`rewrite`), compiled and captured
(`capture`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.graph import CodeGen
from torch.utils import _pytree as pytree

from tiebreak.layers.buffer_updates import rebound_buffers, take_buffer_updates
from tiebreak.layers.dropout import restart_calls
from tiebreak.layers.mapped_forms import mapped_forms
from tiebreak.study.augment import Augment
from tiebreak.study.base import RunPrecision
from tiebreak.study.optimiser import Kind
from tiebreak.system import collector_paused
from tiebreak.tasks.interface import Hypers, Split, Task, select
from tiebreak.train.augmentation import augmented
from tiebreak.train.foreach_update import Traced
from tiebreak.train.fused.repeated_operations import merge_repeated
from tiebreak.train.optim import clip_factor, update
from tiebreak.train.precision import callable_in

Tensors = Mapping[str, Tensor]
Function = Callable[[Any, Any, Any], Any]  # of a state (changed in place), shared tensors, and the inputs of a step


OverRuns = Callable[..., Callable[..., Any]]


def alone(function: Callable[..., Any], in_dims: Any = 0) -> Callable[..., Any]:
    """What `vmap` of a function is for a stack of one run, without a run axis inside: torch's own kernels serve it."""

    def call(*arguments: Any) -> Any:
        axes = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(arguments)
        own = [_only(argument, axis) for argument, axis in zip(arguments, axes, strict=True)]
        return pytree.tree_map(lambda values: values.unsqueeze(0), function(*own))

    return call


def _only(argument: Any, axis: Any) -> Any:
    """The only run's part of an argument; an axis of None belongs to all runs."""
    if isinstance(axis, dict):
        return {name: _only(argument[name], own) for name, own in axis.items()}
    return argument if axis is None else pytree.tree_map(lambda values: values.squeeze(0), argument)


class _Loss(nn.Module):
    """A task's loss of one run's batch, and the buffers that the network would have changed."""

    def __init__(self, task: Task, network: nn.Module, precision: RunPrecision | None) -> None:
        super().__init__()
        self.task, self.network, self.precision = task, network, precision

    def forward(self, batch: Split, weights: Tensor, hypers: Hypers) -> tuple[Tensor, dict[str, Tensor]]:
        restart_calls(self.network)
        before = dict(self.network.named_buffers())
        with mapped_forms():
            loss = self.task.loss(callable_in(self.network, self.precision), batch, weights, hypers)
        return loss, {**rebound_buffers(self.network, before), **take_buffer_updates(self.network)}


class _Outcomes(nn.Module):
    """A task's outcomes of one run's batch, and the buffers that the network would have changed."""

    def __init__(self, task: Task, network: nn.Module, precision: RunPrecision | None) -> None:
        super().__init__()
        self.task, self.network, self.precision = task, network, precision

    def forward(self, batch: Split) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        call = callable_in(self.network, self.precision)
        with mapped_forms():
            return self.task.outcomes(call, batch), take_buffer_updates(self.network)


def _inside(tensors: Tensors) -> dict[str, Tensor]:
    """A network's tensors under the names that they have inside the modules above."""
    return {f"network.{name}": value for name, value in tensors.items()}


def make_step(
    task: Task,
    network: nn.Module,
    kind: Kind,
    augment: Augment | None = None,
    precision: RunPrecision | None = None,
    *,
    over_runs: OverRuns = vmap,
    at_once: Traced | None = None,
) -> Function:
    """One training step of n runs; `over_runs` makes it of a function of one run: `vmap`, or `alone` for a single run.

    `at_once` updates all parameters of a single run; without it they are updated one by one.

    state, changed in place: params, buffers, slots and averages [n, ...], and total [n], the sum of the losses; shared:
    the data (split), hypers and dropout rates [n]; inputs: those of this step, see `step_inputs`.
    """
    inside = _Loss(task, network, precision)

    def one(params: Tensors, buffers: Tensors, batch: Split, weights: Tensor, hypers: Hypers) -> Any:
        given = {**_inside(params), **_inside(buffers)}
        return functional_call(inside, given, (batch, weights, hypers))

    def step(state: Mapping[str, Any], shared: Mapping[str, Any], inputs: Mapping[str, Any]) -> None:
        params, slots, buffers = state["params"], state["slots"], state["buffers"]
        averages = state.get("averages", {})
        batch = select(task, shared["split"], lambda values: gather(values, inputs["indices"]))
        if augment is not None:
            change = partial(augmented, augment)
            batch = over_runs(change)(batch, inputs["indices"], inputs["weights"], inputs["augment"])
        batch_axes = {name: None if name in task.shared else 0 for name in batch}
        hypers = {**shared["hypers"], **inputs["changing"]}
        gradient, (loss, fresh) = over_runs(grad_and_value(one, has_aux=True), in_dims=(0, 0, batch_axes, 0, 0))(
            params, {**buffers, **shared["rates"], **inputs["buffers"]}, batch, inputs["weights"], hypers
        )
        if "clip_norm" in hypers:
            factor = over_runs(lambda grads, own: clip_factor(list(grads.values()), own))(gradient, hypers)
            gradient = {name: _spread(factor, grad.ndim) * grad for name, grad in gradient.items()}
        axes = {param.ndim for param in params.values()}
        spreads = {each: {key: _spread(number, each) for key, number in hypers.items()} for each in axes}
        if at_once is not None:
            _update_alone(at_once, params, gradient, slots, hypers)
        for name, param in params.items():
            spread = spreads[param.ndim]
            if at_once is None:
                update(kind, param, gradient[name], slots[name], spread, into=(param, slots[name]))
            if averages:
                torch.lerp(param, averages[name], spread["ema"], out=averages[name])
        for name, values in fresh.items():
            buffers[name].copy_(values)
        state["total"].add_(loss)

    return step


def _update_alone(
    at_once: Traced, params: Tensors, gradient: Tensors, slots: Mapping[str, Tensors], hypers: Tensors
) -> None:
    """Update the only run of a stack."""
    names = list(next(iter(slots.values()))) if slots else []
    columns = {slot: [slots[name][slot].squeeze(0) for name in params] for slot in names}
    grads = [gradient[name].squeeze(0) for name in params]
    own = {name: number.squeeze(0) for name, number in hypers.items()}
    at_once([param.squeeze(0) for param in params.values()], grads, columns, own)


def _spread(numbers: Tensor, axes: int) -> Tensor:
    """Numbers [n] with as many axes as a stack of tensors has."""
    return numbers.view(-1, *[1] * (axes - 1))


def make_outcomes(
    task: Task, network: nn.Module, precision: RunPrecision | None = None, *, over_runs: OverRuns = vmap
) -> Function:
    """The outcomes [n, B] of n runs on one batch. Params and buffers are shared, and not changed.

    state, changed in place: the buffers [n, ...] that go from one batch to the next, in the place of the shared ones.
    """
    inside = _Outcomes(task, network, precision)

    def one(params: Tensors, buffers: Tensors, batch: Split) -> Any:
        return functional_call(inside, {**_inside(params), **_inside(buffers)}, (batch,))

    def all_of(state: Mapping[str, Any], shared: Mapping[str, Any], batch: Split) -> dict[str, Tensor]:
        buffers = {**shared["buffers"], **state}
        outcomes: dict[str, Tensor]
        outcomes, fresh = over_runs(one, in_dims=(0, 0, None))(shared["params"], buffers, batch)
        for name, values in state.items():
            values.copy_(fresh[name])
        return outcomes

    return all_of


def gather(values: Tensor, indices: Tensor) -> Tensor:
    """The examples [n, B, ...] of indices [n, B]."""
    return values.index_select(0, indices.flatten()).view(*indices.shape, *values.shape[1:])


@dataclass(frozen=True)
class Trace:
    """The operations of a function, from the leaves of its arguments to those of its result."""

    graph: GraphModule
    result: pytree.TreeSpec

    @property
    def operations(self) -> int:
        """How many there are."""
        return sum(node.op == "call_function" for node in self.graph.graph.nodes)

    def __call__(self, leaves: Sequence[Tensor]) -> Any:
        """What the function returns."""
        return pytree.tree_unflatten(self.graph(*leaves), self.result)


def trace(function: Function, *arguments: Any, merge: bool = False) -> Trace:
    """The operations of a call, for arguments of these shapes. Nothing is computed.

    `merge`: what is computed several times is computed once, see `repeated_operations`.

    The caches of layers must be filled before: call the function once, with any number of runs.
    """
    leaves, structure = pytree.tree_flatten(arguments)
    results: list[pytree.TreeSpec] = []

    def flat(*values: Tensor) -> list[Tensor]:
        found, spec = pytree.tree_flatten(function(*pytree.tree_unflatten(values, structure)))
        results.append(spec)
        return found

    with collector_paused():  # its searches took a tenth of the time
        graph = make_fx(flat, tracing_mode="fake", _allow_non_fake_inputs=True)(*leaves)
    graph.graph.set_codegen(CodeGen())  # plain arguments and a plain list, without pytrees around them
    graph.graph.eliminate_dead_code()
    if merge:
        merge_repeated(graph.graph)
    graph.recompile()
    return Trace(graph, results[-1])


def leaves_of(*arguments: Any) -> list[Tensor]:
    """The tensors of arguments, in the order of a trace."""
    return pytree.tree_leaves(arguments)
