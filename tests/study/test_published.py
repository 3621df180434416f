from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from support import bad_studies
from tiebreak.study.published import Claim, Reported
from tiebreak.study.schema import Study

Make = Callable[..., Study]


def test_claims_and_figures_keep_the_protocol_that_they_were_made_for() -> None:
    study = Study.load("pooling")
    for changed in (study.quickened(), study.changed(data="mnist5k", epochs=1), study.quickened().changed(seeds=3)):
        assert changed.data == "mnist5k"
        assert changed.protocol == "audited"
        assert changed.budget.epochs < 15
        items: list[Claim | Reported] = [*changed.claims, *changed.reported]
        for item in items:
            assert (item.data, item.protocol, item.epochs) == ("octmnist", "as-reported", 15)


def test_a_claim_may_be_made_for_a_protocol_of_its_own(tiny_study: Make) -> None:
    claim = {**bad_studies.CLAIM, "data": "octmnist", "protocol": "as-reported", "epochs": 15}
    study = tiny_study(claims=[claim])
    assert (study.claims[0].data, study.claims[0].protocol, study.claims[0].epochs) == ("octmnist", "as-reported", 15)


def test_a_claim_expects_a_unless_it_says_otherwise() -> None:
    assert Claim.model_validate(bad_studies.CLAIM).expect == "a"
    with pytest.raises(ValidationError):
        Claim.model_validate({**bad_studies.CLAIM, "expect": "c"})


def test_a_figure_is_a_finite_number() -> None:
    with pytest.raises(ValidationError):
        Reported.model_validate({**bad_studies.REPORTED, "value": float("inf")})
