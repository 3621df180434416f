"""Evaluation: outcomes per example over a whole split, and the metrics made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tiebreak.layers.carry import carry_on, from_zeros
from tiebreak.study.base import RunPrecision
from tiebreak.study.registry import Scalar
from tiebreak.tasks.interface import Split, Task, count, select
from tiebreak.train.precision import callable_in

Evaluation = tuple[dict[str, float], dict[str, npt.NDArray[Any]]]  # metrics, and an outcome per example

PLAIN: Mapping[str, Scalar] = MappingProxyType({})  # no options: the task's default evaluation
BATCH = 500  # for evaluation only: it does not affect the metrics
NUMBERS = 1 << 23  # in a batch, at most: a clip of half a minute has 220,000


def evaluate(
    task: Task,
    network: nn.Module,
    split: Split,
    how: Mapping[str, Scalar] = PLAIN,
    precision: RunPrecision | None = None,
) -> Evaluation:
    """The metrics of a split and the outcome of each of its examples. The network is in evaluation mode afterwards.

    Examples that have an order are evaluated one at a time. The state that the network carries between them starts at
    zero; the state that it carried before is restored afterwards.
    """
    network.eval()
    call = callable_in(network, precision)
    task = task.with_options(how)
    examples = count(task, split)
    parts: dict[str, list[npt.NDArray[np.float32]]] = {}
    size = 1 if task.ordered else at_once(task, split, BATCH)
    with torch.no_grad(), from_zeros(network):
        for start in range(0, examples, size):
            batch = select(task, split, partial(_part, start=start, size=size))
            for name, values in task.outcomes(call, batch).items():
                parts.setdefault(name, []).append(values.float().cpu().numpy())
            if task.ordered:
                carry_on(network)
    outcomes = {name: np.concatenate(values) for name, values in parts.items()}
    return task.score(outcomes)


def at_once(task: Task, split: Split, most: int) -> int:
    """How many examples of a split to evaluate at a time: `most`, or fewer if they are large."""
    each = sum(values[0].numel() for name, values in split.items() if name not in task.shared)
    return max(1, min(most, NUMBERS // max(1, each)))


def _part(values: Tensor, start: int, size: int) -> Tensor:
    return values[start : start + size]


def not_finite(metrics: Mapping[str, float]) -> str:
    """The first metric that is not finite, as text; empty if all are."""
    wrong = [f"{name.replace('_', ' ')} {value:g}" for name, value in metrics.items() if not math.isfinite(value)]
    return wrong[0] if wrong else ""
