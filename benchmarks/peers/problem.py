"""What every peer trains, as plain arrays, so that their parameters can be compared before anything is timed.

Shapes: n runs, S steps, B batch, N examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Design = Literal["cnn-pool", "cnn-strided"]
Floats = npt.NDArray[np.float32]

RATES = (0.05, 0.1, 0.2)  # learning rates, dealt to the runs in turn


@dataclass(frozen=True, kw_only=True)
class Problem:
    """n runs of one design by SGD without momentum: everything that decides their parameters after s steps."""

    design: Design
    images: Floats  # [N, 1, 28, 28]
    labels: npt.NDArray[np.int64]  # [N]
    indices: npt.NDArray[np.int64]  # [S, n, B], the examples that each step of each run sees
    keys: npt.NDArray[np.int32]  # [S, n], of the only dropout layer
    rate: float  # of dropout
    lr: Floats  # [n]
    params: Mapping[str, Floats]  # name -> [n, ...], before the first step

    @property
    def steps(self) -> int:
        """S; a peer that has taken them all begins again with the first."""
        return len(self.indices)

    def alone(self, run: int) -> Problem:
        """One of the runs as a problem of its own."""
        here = slice(run, run + 1)
        return replace(
            self,
            indices=self.indices[:, here],
            keys=self.keys[:, here],
            lr=self.lr[here],
            params={name: values[here] for name, values in self.params.items()},
        )


class Peer(Protocol):
    """A trainer of a whole problem."""

    problem: Problem

    def prepare(self) -> None:
        """Compile, capture, warm up; leaves the peer at its start."""

    def run(self, steps: int) -> None:
        """Advance every run by so many steps and wait for the device."""

    def reset(self) -> None:
        """Back to the initial parameters and the first step."""

    def parameters(self) -> dict[str, Floats]:
        """Name -> [n, ...]."""


def make_problem(
    design: Design, n: int, batch: int, steps: int, seed: int = 0, *, examples: int = 60_000, rate: float = 0.7
) -> Problem:
    """Runs with the seeds from `seed` on, begun and ordered as ours are; images are a noisy prototype per class."""
    import torch

    from tiebreak.catalog import DESIGNS
    from tiebreak.data.batches import epoch_batches
    from tiebreak.layers.dropout import step_keys
    from tiebreak.models.design import Images
    from tiebreak.streams import stream

    examples -= examples % batch  # peers take the mean over whole batches
    shape = Images(channels=1, height=28, width=28, classes=10)
    numbers = np.random.default_rng(seed)
    labels = numbers.integers(shape.classes, size=examples)
    prototypes = numbers.random((shape.classes, 1, 28, 28), np.float32)
    noise = numbers.random((examples, 1, 28, 28), np.float32)
    seeds = range(seed, seed + n)
    epochs = range(-(-steps // (examples // batch)))
    orders = [np.concatenate([epoch_batches(s, e, examples, batch).indices for e in epochs])[:steps] for s in seeds]
    keys = [step_keys(stream(s, "dropout"), 0, steps, 1)[:, 0] for s in seeds]
    starts = [dict(DESIGNS[design].network(shape, {}, stream(s, "init")).named_parameters()) for s in seeds]
    return Problem(
        design=design,
        images=0.5 * (prototypes[labels] + noise),
        labels=labels,
        indices=np.stack(orders, axis=1),
        keys=torch.stack(keys, dim=1).numpy(),
        rate=rate,
        lr=np.resize(np.array(RATES, np.float32), n),
        params={name: torch.stack([start[name].detach() for start in starts]).numpy() for name in starts[0]},
    )


def distances(found: Mapping[str, Floats], expected: Mapping[str, Floats]) -> Floats:
    """For each run the largest distance of a tensor from the expected one, relative to the latter's norm: [n].

    Look at the bulk and not only at the worst: in float32 a few steps in a thousand hold a unit so near to zero, or two
    maxima so near to each other, that rounding decides where the gradient goes; that moves a run by up to 1e-3.
    """
    worst = np.zeros(len(next(iter(found.values()))), np.float32)
    for name, values in found.items():
        flat, right = values.reshape(len(worst), -1), expected[name].reshape(len(worst), -1)
        worst = np.maximum(worst, np.linalg.norm(flat - right, axis=1) / np.linalg.norm(right, axis=1))
    return worst
