"""The inputs of every step of an epoch: examples and their weights, dropout keys, learning rates. One row a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from tiebreak.data.batches import epoch_batches
from tiebreak.layers.batchnorm import batchnorms
from tiebreak.layers.dropout import keyed, step_keys
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.train.optim import per_step
from tiebreak.train.schedule import factors
from tiebreak.train.step import State, hyper_tensors

StepInputs = Mapping[str, Any]  # tensors [S, n, ...], or such mappings


def epoch_inputs(
    network: nn.Module,
    runs: Sequence[Run],
    states: Sequence[State],
    examples: int,
    dtype: torch.dtype,
    *,
    shuffled: bool = True,
) -> StepInputs:
    """The inputs of the next epoch of n runs: indices and weights [S, n, B], the rest [S, n], on the CPU.

    Computed run by run with the functions that `loop` uses; the order of the data once for each seed.
    """
    like = torch.zeros((), dtype=dtype)
    places = [(run.seed, state.epoch, state.steps) for run, state in zip(runs, states, strict=True)]
    batches = {
        place: epoch_batches(place[0], place[1], examples, runs[0].batch, shuffled=shuffled) for place in set(places)
    }
    steps = len(batches[places[0]].indices)
    drawing = keyed(network)
    keys = {place: step_keys(stream(place[0], "dropout"), place[2], steps, len(drawing)) for place in set(places)}
    draws = {place: step_keys(stream(place[0], "augment"), place[2], steps, 1)[:, 0] for place in set(places)}
    changing = [
        per_step(
            run.optimiser.kind,
            hyper_tensors(run, like),
            factors(run.optimiser.schedule, state.epoch, steps, run.epochs, state.reduction),
            state.steps,
        )
        for run, state in zip(runs, states, strict=True)
    ]
    names = dict.fromkeys(name for each in changing for name in each)
    none = torch.zeros(steps, dtype=dtype)  # for a run that does not use it
    indices = torch.stack([torch.from_numpy(batches[place].indices) for place in places], dim=1)
    weights = torch.stack([torch.from_numpy(batches[place].weights) for place in places], dim=1).to(like)
    every_key = torch.stack([keys[place] for place in places], dim=1)
    buffers = {
        join(name, "key"): every_key[..., number].contiguous()
        for number, (name, layer) in enumerate(drawing.items())
        if not getattr(layer, "idle", False)
    }
    buffers |= {join(name, "weights"): weights for name in batchnorms(network)}
    augment = {} if runs[0].augment is None else {"augment": torch.stack([draws[place] for place in places], dim=1)}
    return {
        **augment,
        "indices": indices,
        "weights": weights,
        "buffers": buffers,
        "changing": {name: torch.stack([each.get(name, none) for each in changing], dim=1) for name in names},
    }


def join(layer: str, name: str) -> str:
    """The full name of a layer's buffer; the network itself has no name."""
    return f"{layer}.{name}" if layer else name


def mapped(tree: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """The same structure with every tensor replaced."""
    if isinstance(tree, Tensor):
        return function(tree)
    return {name: mapped(value, function) for name, value in tree.items()}
