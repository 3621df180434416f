"""Evaluation: outcomes per example over a whole split, and the metrics made of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tiebreak.tasks.interface import Split, Task

Evaluation = tuple[dict[str, float], dict[str, npt.NDArray[np.float32]]]  # metrics, and an outcome per example

BATCH = 500  # for evaluation only: it cannot change what is measured


def evaluate(task: Task, network: nn.Module, split: Split) -> Evaluation:
    """The metrics of a split and the outcome of each of its examples. The network is in evaluation mode afterwards."""
    network.eval()
    examples = len(next(iter(split.values())))
    parts: dict[str, list[npt.NDArray[np.float32]]] = {}
    with torch.no_grad():
        for start in range(0, examples, BATCH):
            batch = {name: values[start : start + BATCH] for name, values in split.items()}
            for name, values in task.outcomes(network, batch).items():
                parts.setdefault(name, []).append(values.float().cpu().numpy())
    outcomes = {name: np.concatenate(values) for name, values in parts.items()}
    return task.metrics(outcomes), outcomes
