"""The `[program]` table: durations, directions of metrics."""

from __future__ import annotations

import pytest

from support import own_program
from tiebreak.errors import TiebreakError
from tiebreak.study.program_keys import seconds


@pytest.mark.parametrize(("text", "found"), [("2 h", 7200), ("90min", 5400), ("1.5 s", 1.5), ("3 d", 259200)])
def test_durations(text: str, found: float) -> None:
    assert seconds(text) == found


@pytest.mark.parametrize("text", ["2", "h", "-1 h", "0 s", "2 weeks", "1e3 s", "", "9" * 30 + " s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(TiebreakError, match=r"program\.timeout: .*2 h"):
        own_program.checked(program={"timeout": text})


def test_the_direction_of_a_metric_is_known_by_its_name_or_given() -> None:
    assert own_program.checked().goal() == "max"
    assert own_program.checked(metric="rmse").goal() == "min"
    assert own_program.checked(metric="score", program={"goal": "min"}).goal() == "min"
    made = own_program.checked(metric="score", program={"goal": {"score": "max", "cost": "min"}})
    assert (made.goal(), made.goal("cost")) == ("max", "min")
    with pytest.raises(TiebreakError, match=r"program\.goal: .*score"):
        own_program.checked(metric="score")
    with pytest.raises(TiebreakError, match=r"program\.goal: .*'up'"):
        own_program.checked(program={"goal": "up"})
