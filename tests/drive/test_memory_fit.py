from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tiebreak.drive.memory_fit import runs_that_fit


@given(st.integers(1, 64), st.integers(0, 1 << 34), st.integers(1 << 10, 1 << 30), st.integers(1 << 34, 1 << 38))
def test_what_all_runs_share_is_counted_once(n: int, shared: int, each: int, free: int) -> None:
    found = runs_that_fit([(n, shared + n * each), (2 * n, shared + 2 * n * each)], free, share=0.8)
    assert shared + found * each <= 0.8 * free + each or found == 2
    assert shared + (found + 2) * each > 0.8 * free


def test_one_probe_counts_all_bytes_as_those_of_runs() -> None:
    assert runs_that_fit([(8, 800)], 10_000, share=0.8) == 80
    assert runs_that_fit([(4, 800), (8, 800)], 10_000, share=0.8) == 80  # the larger one needed no more
    assert runs_that_fit([(4, 800), (4, 900)], 9_000, share=0.5) == 20  # memory ran out at the larger one
    assert runs_that_fit([(4, 10_000), (8, 20_000)], 100) == 2
