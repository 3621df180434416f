from __future__ import annotations

import pytest

from tiebreak.verdict.compared import checked, cut_at_zero, least_total


def test_an_interval_excludes_zero_exactly_when_the_test_rejects() -> None:
    assert cut_at_zero((-0.1, 0.5), True) == (0.0, 0.5)
    assert cut_at_zero((-0.5, 0.1), True) == (-0.5, 0.0)
    low, high = cut_at_zero((0.1, 0.5), False)
    assert low < 0 < high


@pytest.mark.parametrize("n", [7, 20, 999])
def test_the_seeds_needed_are_found_by_doubling(n: int) -> None:
    assert least_total(lambda total: total >= n, 5, 6) == n - 5
    assert least_total(lambda total: False, 5, 6) is None


def test_scores_that_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        checked([1.0, 1e200])
