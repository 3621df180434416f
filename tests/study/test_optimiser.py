from __future__ import annotations

import pytest
from pydantic import ValidationError

from tiebreak.study.optimiser import Optimiser, Schedule


def test_only_a_schedule_that_ends_with_the_budget_depends_on_it() -> None:
    assert not Schedule().depends_on_budget()
    assert Schedule(kind="cosine").depends_on_budget()
    assert not Schedule(kind="linear", decay_epochs=12).depends_on_budget()


def test_the_default_is_sgd_at_a_constant_rate() -> None:
    assert (Optimiser().kind, Optimiser().schedule.kind) == ("sgd", "constant")


@pytest.mark.parametrize("change", [{"floor": 1.5}, {"floor": -0.1}, {"warmup_epochs": -1}, {"kind": "cosinus"}])
def test_a_schedule_out_of_range_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Schedule.model_validate(change)
