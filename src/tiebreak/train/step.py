"""One training step of one run: its state, the loss, and the update (optim.py).

These functions know one run only. `loop` calls them directly, which is the specification.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from tiebreak.layers.batchnorm import BatchNorm
from tiebreak.layers.carry import carried
from tiebreak.layers.dropout import Dropout, Keyed, dropouts
from tiebreak.plan.runs import Run
from tiebreak.study.optimiser import Kind
from tiebreak.study.registry import HYPERS
from tiebreak.tasks.interface import Hypers, Network, Split, Task
from tiebreak.train.optim import OF_A_PASS, Slots, clip_factor, empty_slots, update

BEST, BEST_EPOCH, BAD_EPOCHS, REDUCTION = range(4)  # places in `State.monitor`


@dataclass
class State:
    """Everything of a run that changes, and is saved in a checkpoint. The tensors are the network's own."""

    params: dict[str, Tensor]
    buffers: dict[str, Tensor]  # and parameters that are not trained
    slots: dict[str, Slots]  # parameter -> the update rule's memory of it
    rates: dict[str, Tensor]  # dropout rates by buffer: constant, and so in no checkpoint
    epoch: int = 0  # epochs completed
    steps: int = 0  # steps completed
    averages: dict[str, Tensor] = field(default_factory=dict)  # moving averages of the parameters, where they are kept
    best: dict[str, Tensor] = field(default_factory=dict)  # evaluated parameters and buffers of the best epoch
    monitor: Tensor | None = None  # what validation has decided so far, see `monitor`

    @property
    def reduction(self) -> float:
        """What validation has brought the learning rate down to, as a factor."""
        return 1.0 if self.monitor is None else float(self.monitor[REDUCTION])

    def tensors(self) -> dict[str, Tensor]:
        """All tensors that change, by name."""
        found = {f"params.{name}": value for name, value in self.params.items()}
        found |= {f"buffers.{name}": value for name, value in self.buffers.items()}
        for name, slots in self.slots.items():
            found |= {f"slots.{name}.{slot}": value for slot, value in slots.items()}
        found |= {f"averages.{name}": value for name, value in self.averages.items()}
        found |= {f"best.{name}": value for name, value in self.best.items()}
        return found if self.monitor is None else {**found, "monitor": self.monitor}


def hyper_tensors(run: Run, like: Tensor) -> dict[str, Tensor]:
    """The run's hyper-parameters as tensors, without those that are zero or left to the design."""
    given = {name: run.hypers.get(name) for name in HYPERS}
    return {name: torch.tensor(value, dtype=like.dtype, device=like.device) for name, value in given.items() if value}


def initial_state(network: nn.Module, run: Run) -> State:
    """The state before the first step. The run's dropout rate, if it has one, replaces the design's own."""
    rate = run.hypers["dropout"]
    for layer in dropouts(network) if rate is not None else ():
        layer.rate.fill_(rate or 0.0)
    params = {name: parameter.detach() for name, parameter in network.named_parameters() if parameter.requires_grad}
    hypers = hyper_tensors(run, next(iter(params.values())))
    frozen = {name: parameter.data for name, parameter in network.named_parameters() if name not in params}
    buffers = frozen | {name: buffer for name, buffer in network.named_buffers() if not _set_by_step(network, name)}
    stops = run.monitor is not None and bool(run.monitor.patience)
    return State(
        params=params,
        buffers=buffers,
        slots={name: empty_slots(run.optimiser.kind, param, hypers) for name, param in params.items()},
        rates={name: buffer for name, buffer in network.named_buffers() if _is_rate(network, name)},
        averages={name: param.clone() for name, param in params.items()} if "ema" in hypers else {},
        best={name: values.clone() for name, values in {**params, **buffers}.items()} if stops else {},
        monitor=None if run.monitor is None else torch.tensor([math.nan, 0.0, 0.0, 1.0], dtype=torch.float64),
    )


def _is_rate(network: nn.Module, buffer: str) -> bool:
    layer, _, name = buffer.rpartition(".")
    return name == "rate" and isinstance(network.get_submodule(layer), Dropout)


def _set_by_step(network: nn.Module, buffer: str) -> bool:
    """Whether a buffer is set at every step, and so is not part of the state."""
    layer, _, name = buffer.rpartition(".")
    owner = network.get_submodule(layer)
    return isinstance(owner, Keyed) or (isinstance(owner, BatchNorm) and name == "weights")


def start_pass(kind: Kind, network: nn.Module, buffers: Mapping[str, Tensor], slots: Mapping[str, Slots]) -> None:
    """Set to zero, in place, what starts over with every pass over the data: carried states, and sums of some rules."""
    for name in carried(network):
        buffers[name].zero_()
    if kind in OF_A_PASS:
        for own in slots.values():
            for values in own.values():
                values.zero_()


@contextmanager
def averaged(state: State) -> Iterator[None]:
    """Inside the block, the network has the averaged parameters where the run keeps averages."""
    own = {name: state.params[name].clone() for name in state.averages}
    for name, values in state.averages.items():
        state.params[name].copy_(values)
    yield
    for name, values in own.items():
        state.params[name].copy_(values)


@dataclass(frozen=True)
class Snapshot:
    """A state as it was at a time: copies of its tensors."""

    tensors: list[Tensor]
    epoch: int
    steps: int

    @classmethod
    def of(cls, state: State) -> Snapshot:
        """The state now."""
        return cls([values.clone() for values in state.tensors().values()], state.epoch, state.steps)

    def restore(self, state: State) -> None:
        """Bring the same state back to what it was, in place."""
        for values, saved in zip(state.tensors().values(), self.tensors, strict=True):
            values.copy_(saved)
        state.epoch, state.steps = self.epoch, self.steps


@contextmanager
def rollback(states: Sequence[State]) -> Iterator[None]:
    """Restore the states after the block to what they were before it."""
    before = [Snapshot.of(state) for state in states]
    yield
    for state, snapshot in zip(states, before, strict=True):
        snapshot.restore(state)


def loss_and_gradient(
    task: Task, network: Network, params: Sequence[Tensor], batch: Split, weights: Tensor, hypers: Hypers
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The weighted mean loss of a batch and its gradient with respect to `params`."""
    loss = task.loss(network, batch, weights, hypers)
    gradient = torch.autograd.grad(loss, params, materialize_grads=True)
    return loss.detach(), gradient


def apply_update(kind: Kind, state: State, gradient: tuple[Tensor, ...], hypers: Hypers) -> None:
    """Update every parameter in place: the state's tensors share their memory with the network's."""
    if "clip_norm" in hypers:
        factor = clip_factor(gradient, hypers)
        gradient = tuple(grad * factor for grad in gradient)
    for (name, param), grad in zip(state.params.items(), gradient, strict=True):
        update(kind, param, grad, state.slots[name], hypers, into=(param, state.slots[name]))
    for name, average in state.averages.items():
        torch.lerp(state.params[name], average, hypers["ema"], out=average)
