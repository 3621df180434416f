"""The order of the data: a function of (seed, epoch), so that a resumed run sees what an uninterrupted one would."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tiebreak.streams import stream


@dataclass(frozen=True, kw_only=True)
class Batches:
    """One epoch: which examples each step sees (S steps, B examples), and their shares of the step's mean loss."""

    indices: npt.NDArray[np.int64]  # [S, B]
    weights: npt.NDArray[np.float64]  # [S, B], each row sums to 1; padding has weight 0


def epoch_batches(seed: int, epoch: int, examples: int, batch: int, *, shuffled: bool = True) -> Batches:
    """Every example once, in the order of the stream ("order", epoch), or in their own.

    A partial last batch is padded with weight 0.
    """
    order = np.arange(examples)
    if shuffled:
        order = np.random.Generator(np.random.Philox(stream(seed, "order", epoch))).permutation(examples)
    steps = -(-examples // batch)
    indices = np.zeros(steps * batch, np.int64)
    indices[:examples] = order
    present = (np.arange(steps * batch) < examples).reshape(steps, batch)
    weights = present / present.sum(axis=1, keepdims=True)
    return Batches(indices=indices.reshape(steps, batch), weights=weights)
