"""Spearman's rank correlation, for the verdict on metrics that should agree and for the table of a report."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
LEAST_POINTS = 3  # fewer say nothing about a rank correlation


def spearman(first: Values, second: Values) -> float | None:
    """Spearman's rank correlation of two columns; ties share the mean of their ranks.

    None below three points and where a column is constant; NaN where a value is NaN.

    >>> spearman(np.array([1.0, 2.0, 4.0]), np.array([3.0, 1.0, 2.0]))
    -0.5
    >>> spearman(np.array([1.0, 2.0, 4.0]), np.ones(3)) is None
    True
    """
    if len(first) < LEAST_POINTS or any(np.all(column == column[0]) for column in (first, second)):
        return None
    from scipy.stats import spearmanr

    return float(np.round(spearmanr(first, second).statistic, 12))


def least_spearman(columns: Values) -> float:
    """The least rank correlation between two columns of an array [n, columns]; 0 where one of them is constant."""
    return float(np.min([spearman(first, second) or 0.0 for first, second in combinations(columns.T, 2)]))
