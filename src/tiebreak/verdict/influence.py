"""The influence of each test example on a score, by the delta method. Pure functions of numpy arrays.

A score is a function of the J examples of a test set: a mean, a ratio of sums, the exponential of one. To first order
it is the mean of J values g_j, one for each example, so that their spread is the uncertainty over test examples:

| functional | score                      | g_j                                       |
|------------|----------------------------|-------------------------------------------|
| mean       | m = Σ v_j / J              | v_j                                       |
| ratio      | R = Σ n_j / Σ w_j          | R + (J / Σ w) · (n_j - R w_j)             |
| exp-ratio  | P = exp(R)                 | P + P · (J / Σ w) · (n_j - R w_j)         |

v_j is the metric of example j alone, w_j its denominator (tokens, characters, words) and n_j = v_j · max(w_j, 1) its
numerator: an example with nothing in its denominator has its numerator as its own metric.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tiebreak.study.registry import MetricEntry

Values = NDArray[np.float64]


def influence(metric: MetricEntry, values: ArrayLike, weights: ArrayLike | None = None) -> Values:
    """g_j of every example [J]; their mean is the score. Not finite where the score is not."""
    v = np.asarray(values, dtype=np.float64)
    if metric.functional == "mean":
        return v
    if weights is None:
        raise ValueError(f"a {metric.functional} takes weights")
    w = np.asarray(weights, dtype=np.float64)
    if v.shape != w.shape:
        raise ValueError(f"should be one weight for each example, not {w.shape} for {v.shape}")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        numerators = v * np.maximum(w, 1)
        ratio = numerators.sum() / w.sum()
        found = len(v) / w.sum() * (numerators - ratio * w)
        return np.asarray(np.exp(ratio) * (1 + found) if metric.functional == "exp-ratio" else ratio + found)
