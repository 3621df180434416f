from __future__ import annotations

import dataclasses
import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hand_made import EPOCH, RUN
from tiebreak.results import gaps
from tiebreak.results.gaps import epochs_before_gap, lacks_epochs, without_gaps
from tiebreak.results.record import Records, Status


@given(st.sets(st.integers(1, 12)))
def test_all_epochs_before_the_gap_are_there_and_the_next_is_not(epochs: set[int]) -> None:
    last = epochs_before_gap(epochs)
    assert set(range(1, last + 1)) <= epochs
    assert last + 1 not in epochs


@pytest.mark.parametrize(
    ("status", "epochs", "lacks"),
    [
        ("done", [1, 2, 3], False),
        ("done", [1, 3], True),
        ("done", [], True),
        ("diverged", [1, 2], False),
        ("diverged", [2], True),
        ("failed", [], False),
    ],
)
def test_which_runs_lack_an_epoch(status: Status, epochs: list[int], lacks: bool) -> None:
    assert lacks_epochs(dataclasses.replace(RUN, status=status, epoch=3), epochs) is lacks


def test_a_run_that_lacks_an_epoch_is_left_out_and_named() -> None:
    whole = Records(epochs={"path": {1: EPOCH}}, runs={"run": RUN}, finals={})
    assert without_gaps(whole) is whole
    left = without_gaps(dataclasses.replace(whole, epochs={}, damaged=("before",)))
    assert left.runs == {}
    assert left.damaged[0] == "before"
    assert "run run: epoch 1" in left.damaged[1]


def test_the_examples_are_right() -> None:
    assert doctest.testmod(gaps).failed == 0
