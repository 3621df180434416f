"""Counts and measurements of real modules and calls: parameters, operations, memory and time."""

from __future__ import annotations

import statistics
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from tiebreak.cost.op_costs import UncountedOps, known, rules
from tiebreak.models.design import Shape

Call = Callable[[], object]
ENOUGH_SECONDS, MOST_TIMES = 0.5, 40  # of timing one call


@dataclass(frozen=True, kw_only=True)
class Count:
    """Floating-point operations by the convention of `op_costs` (a multiply-add is two); None when they are unknown."""

    flops: int | None
    unknown: tuple[str, ...] = ()  # ops that did arithmetic by no known rule

    @property
    def multiply_adds(self) -> int | None:
        """Half of the operations."""
        return None if self.flops is None else self.flops // 2


class _Total(FlopCounterMode):
    """Counts no layer on its own: the hooks for that do not let a network take a gradient in its forward pass."""

    def __init__(self) -> None:
        super().__init__(display=False, custom_mapping=rules())
        self.mod_tracker: Any = _Untracked()


class _Untracked(AbstractContextManager["_Untracked"]):
    parents = frozenset({"Global"})

    def __exit__(self, *error: object) -> None:
        pass


def count(call: Call) -> Count:
    """The operations of a call, forward or backward. None, never 0, when nothing or not everything could be counted."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # the fast path is one op without a rule
    try:
        with UncountedOps(known()) as uncounted, _Total() as counter:
            call()
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    flops = counter.get_total_flops()
    return Count(flops=None if uncounted.unknown else flops or None, unknown=tuple(sorted(uncounted.unknown)))


def parameters(network: nn.Module) -> int:
    """The number of trained numbers."""
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)


def number_bytes(network: nn.Module) -> int:
    """Bytes of a trained number; the most where they differ."""
    return max((each.element_size() for each in network.parameters() if each.requires_grad), default=0)


def _inputs(network: nn.Module, shape: Shape, batch: int) -> tuple[Tensor, ...]:
    """Example inputs; real numbers are float64 where all parameters are."""
    double = {each.dtype for each in network.parameters()} == {torch.float64}
    return tuple(each.double() if double and each.is_floating_point() else each for each in shape.inputs(batch))


def forward_flops(network: nn.Module, shape: Shape) -> int | None:
    """Floating-point operations to evaluate one example (a multiply-add is two); None when they are unknown."""
    was_training, trained = network.training, [each for each in network.parameters() if each.requires_grad]
    network.eval()
    for each in trained:
        each.requires_grad_(False)  # torch's counter fails on an output that is a view of a trained parameter
    try:
        with torch.no_grad():
            return count(lambda: network(*_inputs(network, shape, 1))).flops
    finally:
        network.train(was_training)
        for each in trained:
            each.requires_grad_(True)


def kept_for_backward(call: Call, parameters: Iterable[Tensor] = ()) -> tuple[list[int], list[int]]:
    """What a forward pass keeps for the backward pass, without `parameters`: bytes and numbers of each storage."""
    known_places = {tensor.untyped_storage().data_ptr() for tensor in parameters}
    kept: dict[int, tuple[int, int]] = {}

    def keep(tensor: Tensor) -> Tensor:
        if tensor.layout == torch.strided:  # a sparse matrix is a constant, like a parameter
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in known_places:
                kept[storage.data_ptr()] = (storage.nbytes(), storage.nbytes() // tensor.element_size())
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = call()  # keeps the storages alive, so that no address is reused
    del output
    return [size for size, _ in kept.values()], [numbers for _, numbers in kept.values()]


def activation_bytes(network: nn.Module, shape: Shape, batch: int) -> int:
    """Memory of a training step beyond parameters: all that the forward pass keeps for the backward pass.

    The gradients of the activations exist one at a time, so the size of the largest activation is added. Where the
    network itself takes gradients by `torch.func`, torch does not tell what is kept: its peak in a forward pass.
    """
    was_training, tensors = network.training, (*network.parameters(), *network.buffers())

    def call() -> object:
        return network(*_inputs(network, shape, batch))

    network.train()
    try:
        kept, _ = kept_for_backward(call, tensors)
    except RuntimeError as error:
        if "saved tensor hooks" not in str(error):
            raise
        return peak_bytes(call)
    finally:
        network.train(was_training)
    return sum(kept) + max(kept, default=0)


class _Live(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes of the live tensors made by ops. Temporary memory inside a kernel is not seen."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self.seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inputs = {storage._cdata for storage in _storages((args, kwargs))}
        out = func(*args, **(kwargs or {}))
        for storage in _storages(out):
            if storage not in self.seen and storage._cdata not in inputs:
                self.seen.add(storage)
                self.now += storage.nbytes()
                weakref.finalize(storage, self._release, storage.nbytes())
        self.peak = max(self.peak, self.now)
        return out

    def _release(self, size: int) -> None:
        self.now -= size


def _storages(tree: Any) -> list[Any]:
    tensors = [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]
    return [tensor.untyped_storage() for tensor in tensors if tensor.layout == torch.strided]


def peak_bytes(call: Call, device: torch.device | str = "cpu") -> int:
    """The peak memory of a call, beyond what was allocated before it."""
    if torch.device(device).type == "cuda":
        call()  # the first product makes the library allocate a workspace that it keeps
        torch.cuda.synchronize(device)
        before = int(torch.cuda.memory_allocated(device))
        torch.cuda.reset_peak_memory_stats(device)
        call()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device)) - before
    live = _Live()
    with live:
        call()
    return live.peak


def seconds(call: Call, *, warm_up: int = 1, least: int = 3, device: torch.device | str = "cpu") -> float:
    """The median time of a call, repeated at least `least` times and for half a second or 40 calls."""

    def once() -> float:
        if torch.device(device).type == "cuda":
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        call()
        if torch.device(device).type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - start

    for _ in range(warm_up):
        call()
    times: list[float] = []
    while len(times) < least or (sum(times) < ENOUGH_SECONDS and len(times) < MOST_TIMES):
        times.append(once())
    return statistics.median(times)
