"""Ranking of more than two arms: letters say exactly which cannot be told apart."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from support.sample_report import complete
from tiebreak.verdict.ranking import compact_letters

NAMES = "vwxyz"
pairs = st.sets(st.sampled_from(list(itertools.combinations(NAMES, 2))))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(pairs)
def test_two_arms_share_a_letter_exactly_when_they_are_not_apart(apart: set[tuple[str, str]]) -> None:
    letters = compact_letters(NAMES, apart)
    for a, b in itertools.combinations(NAMES, 2):
        assert bool(set(letters[a]) & set(letters[b])) == ((a, b) not in apart)


def test_a_verdict_on_many_arms_ranks_them() -> None:
    ranked = complete().verdict.ranking
    assert [arm.mean for arm in ranked] == sorted((arm.mean for arm in ranked), reverse=True)
    assert len(ranked) == 5
    assert all(arm.letters for arm in ranked)
    first, last = ranked[0], ranked[-1]
    assert first.beats[last.name] + last.beats[first.name] == 1
    assert not set(first.letters) & set(last.letters)
