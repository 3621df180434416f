"""Counts from the real module: parameters, floating-point operations, bytes of activations, seconds per step."""

from __future__ import annotations

import statistics
import time

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from tiebreak.models.interfaces import Shape


def parameters(network: nn.Module) -> int:
    """How many numbers are trained."""
    return sum(parameter.numel() for parameter in network.parameters() if parameter.requires_grad)


def forward_flops(network: nn.Module, shape: Shape) -> int | None:
    """Floating-point operations to evaluate one example (a multiply-add is two); None when nothing was counted."""
    was_training = network.training
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network.eval()(shape.example(1))
    network.train(was_training)
    return counter.get_total_flops() or None


def activation_bytes(network: nn.Module, shape: Shape, batch: int) -> int:
    """What a training step holds at once beyond parameters: all that the forward pass keeps for the backward pass.

    The gradients of the activations exist one after the other and need about as much as the largest: counted too.
    """
    known = {tensor.untyped_storage().data_ptr() for tensor in (*network.parameters(), *network.buffers())}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    was_training = network.training
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = network.train()(shape.example(batch))  # held, so that no address is used twice
    network.train(was_training)
    del output
    return sum(kept.values()) + max(kept.values(), default=0)


def step_seconds(network: nn.Module, shape: Shape, batch: int) -> float:
    """The time of one forward and backward pass on zeros: median of a few, for predictions only."""
    example = shape.example(batch)
    times = []
    for _ in range(8):
        start = time.perf_counter()
        network(example).sum().backward()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])
