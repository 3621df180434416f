"""What values metrics can take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tiebreak.study import registry
from tiebreak.verdict import ranges

RANGE = st.tuples(st.floats(-5, 5), st.floats(0, 3)).map(lambda made: (made[0], made[0] + made[1]))


def test_every_metric_has_a_range() -> None:
    known = {metric for task in registry.TASKS.values() for metric in task.metrics}
    assert ranges.RANGES.keys() == known
    assert ranges.range_of("val_dl") == ranges.range_of("dl") == (0, 1)
    assert ranges.range_of("train_loss") == (0, float("inf"))
    assert ranges.range_of("of my own") == ranges.ANYTHING


@given(st.lists(RANGE, max_size=2), st.lists(RANGE, max_size=2), st.floats(0, 1))
def test_a_difference_lies_within_the_range_of_differences(
    plus: list[ranges.Range], minus: list[ranges.Range], share: float
) -> None:
    low, high = ranges.of_difference(plus, minus)
    found = sum(a + share * (b - a) for a, b in plus) - sum(b + share * (a - b) for a, b in minus)
    assert low - 1e-9 <= found <= high + 1e-9


def test_an_end_is_moved_only_where_it_must_be() -> None:
    assert [ranges.cut(end, (0, 1)) for end in (-0.5, 0.25, 1.5, None)] == [0, 0.25, 1, None]
