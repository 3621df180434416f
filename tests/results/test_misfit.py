from __future__ import annotations

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.results.misfit import explain_misfit


def test_a_failed_lookup_is_one_line_with_its_place() -> None:
    with (
        pytest.raises(TiebreakError, match=r"KeyError.*test_misfit") as caught,
        explain_misfit("x"),
    ):
        raise KeyError("accuracy")
    assert isinstance(caught.value.__cause__, KeyError)


def test_our_own_refusals_stay_as_they_are() -> None:
    with pytest.raises(TiebreakError, match=r"^no data$"), explain_misfit("x"):
        raise TiebreakError("no data")
    with pytest.raises(KeyboardInterrupt), explain_misfit("x"):
        raise KeyboardInterrupt
