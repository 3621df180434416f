"""Counts from the real module: parameters, floating-point operations, seconds per step."""

from __future__ import annotations

import statistics
import time

import torch
from torch import nn
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


def step_seconds(network: nn.Module, shape: Shape, batch: int) -> float:
    """The time of one forward and backward pass on zeros: median of a few, for predictions only."""
    example = shape.example(batch)
    times = []
    for _ in range(8):
        start = time.perf_counter()
        network(example).sum().backward()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])
