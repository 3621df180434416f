from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from tiebreak.verdict.over_sets import compare_over_sets, interval, signed_ranks, walsh_averages

STREAM = np.random.default_rng(4)
B = STREAM.uniform(0.5, 0.95, 9)
A = B + STREAM.normal(0.02, 0.005, 9)


def test_p_is_that_of_the_exact_signed_rank_test() -> None:
    (found,) = compare_over_sets([(A, B)], goal="max", margin=0.005)
    assert found.p == pytest.approx(float(scipy.stats.wilcoxon(A - B, method="exact").pvalue))
    assert (found.verdict, found.seeds, found.test, found.p_a_better) == ("a", 9, "wilcoxon", 1.0)
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < 0.02 < found.high


def test_lower_can_be_better_and_holm_counts_the_pairs() -> None:
    first, second = compare_over_sets([(A, B), (B, B + 1e-4)], goal="min", margin=0.005)
    assert first.verdict == "b"
    assert first.p_adjusted == pytest.approx(2 * (first.p or 0))
    assert second.verdict == "same"


def test_few_sets_decide_nothing_however_clear_they_are() -> None:
    (found,) = compare_over_sets([(A[:5], B[:5])], goal="max", margin=0.005)
    assert found.verdict == "undecided"
    assert "5 data sets" in found.flags[0]
    assert "needs 6" in found.flags[0]
    (one,) = compare_over_sets([(A[:1], B[:1])], goal="max", margin=0.005)
    assert (one.verdict, one.p) == ("undecided", None)


def test_ties_share_ranks_and_zeros_count_for_neither() -> None:
    assert signed_ranks(np.array([0.1, -0.1, 0.3, 0.0])).tolist() == [2.5, -2.5, 4.0, 0.0]
    (found,) = compare_over_sets([(B, B)], goal="max", margin=1e-6)
    assert (found.difference, found.p_a_better, found.verdict) == (0.0, 0.5, "same")


def test_the_interval_covers_the_true_shift() -> None:
    stream, covered = np.random.default_rng(9), 0
    for _ in range(300):
        low, high = interval(walsh_averages(stream.normal(0.5, 1, 10)), 10, 0.05)
        covered += low <= 0.5 <= high
    assert covered / 300 >= 0.91  # at least 95 % in the long run
