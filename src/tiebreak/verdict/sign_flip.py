"""The sign-flip test: exact for differences that are symmetric about 0, whatever their shape. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

EXACT_SEEDS = 16  # the sign-flip test tries all 2^n sign patterns up to here, and draws random ones above
DRAWS = 2**EXACT_SEEDS - 1
MOST_FLIPS = 1024  # signs that are drawn one by one
BLOCK = 2**20  # sums that are held at once


def sign_flip_p(differences: ArrayLike) -> float:
    """Two-sided p of the sign-flip test: the share of sign patterns with |sum of ±d_i| >= |sum of d_i|.

    All 2^n patterns up to 16 seeds, never below 2^(1 - n); above, (hits + 1) / (draws + 1) of a fixed random stream.
    Above 1,024 seeds, runs of neighbouring seeds flip together: fewer patterns, the same error rate.
    """
    return sign_flip_ps([np.asarray(differences, dtype=np.float64)])[0]


def sign_flip_ps(samples: Sequence[NDArray[np.float64]]) -> list[float]:
    """The same of many samples; those with the same number of seeds are computed together."""
    found = [0.0] * len(samples)
    places: dict[int, list[int]] = {}
    for place, values in enumerate(samples):
        places.setdefault(len(values), []).append(place)
    for n, group in places.items():
        if n > EXACT_SEEDS:
            for place in group:
                found[place] = _drawn_sign_flip_p(samples[place])
            continue
        size = max(1, BLOCK >> n)
        for start in range(0, len(group), size):
            block = group[start : start + size]
            rows = np.stack([samples[place] for place in block])
            sums = np.zeros((len(rows), 1))
            for column in rows.T[:, :, None]:
                sums = np.concatenate((sums + column, sums - column), axis=1)
            hits = np.count_nonzero(np.abs(sums) >= _least_sum(rows)[:, None], axis=1)
            for place, count in zip(block, hits.tolist(), strict=True):
                found[place] = count / sums.shape[1]
    return found


def _drawn_sign_flip_p(values: NDArray[np.float64]) -> float:
    if len(values) > MOST_FLIPS:
        values = np.array([part.sum() for part in np.array_split(values, MOST_FLIPS)])
    stream, sums = np.random.default_rng(0), np.zeros(DRAWS)
    for value in values:
        sums = np.where(stream.integers(0, 2, DRAWS, dtype=bool), sums + value, sums - value)
    hits = int(np.count_nonzero(np.abs(sums) >= _least_sum(values)))
    return float((hits + 1) / (DRAWS + 1))


def _least_sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a sum must reach to count as one: sums that differ by rounding are equal."""
    return np.asarray(np.abs(values.sum(axis=-1)) - 1e-9 * np.abs(values).sum(axis=-1))
