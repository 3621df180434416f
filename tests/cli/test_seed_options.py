"""The options that train seeds until the question is decided."""

from __future__ import annotations

import pytest

from support import hand_made
from tiebreak.cli.seed_options import first_look, growing
from tiebreak.errors import TiebreakError


def test_the_options_become_the_table_of_the_study() -> None:
    study = hand_made.study(seeds=4)
    assert growing(study, None, False, False, None) == study
    chosen = growing(study, None, False, True, 20)
    assert chosen.until_decided is not None
    assert (chosen.until_decided.max_seeds, chosen.until_decided.comparisons) == (20, "all")
    first, looks = first_look(chosen)
    assert (first.seeds, looks) == (6, (6, 8, 11, 15, 20))
    assert first_look(study) == (study, ())


def test_seeds_and_until_decided_exclude_one_another() -> None:
    with pytest.raises(TiebreakError, match="--max-seeds 9"):
        growing(hand_made.study(), 9, True, False, None)
    with pytest.raises(TiebreakError, match=r"--max-seeds 9: only with --until-decided; .* --seeds 9"):
        growing(hand_made.study(), None, False, False, 9)
    with pytest.raises(TiebreakError, match="--until-decided with --until-all-decided: give one"):
        growing(hand_made.study(), None, True, True, None)


def test_the_most_seeds_of_a_study_that_grows_already_need_no_other_option() -> None:
    chosen = growing(hand_made.study(until_decided={"max_seeds": 60}), None, False, False, 20)
    assert chosen.until_decided is not None
    assert chosen.until_decided.max_seeds == 20
