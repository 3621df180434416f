"""Every key of a study file, read from the models."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, TypeAdapter

from tiebreak.study.schema import (
    Arm,
    Budget,
    Claim,
    Interaction,
    Optimiser,
    Pair,
    Quick,
    Reported,
    Schedule,
    Study,
)
from tiebreak.study.study_keys import Key, tables


def key(table: str, name: str) -> Key:
    return next(key for each in tables() if each.name == table for key in each.keys if key.name == name)


def test_every_key_has_a_description_and_an_example() -> None:
    """A new key of a model needs `Field(description=..., examples=[...])`: the reference is made of them."""
    for table in tables():
        assert table.description, table.name
        for each in table.keys:
            assert each.description, f"{table.header} {each.name}"
            assert each.examples, f"{table.header} {each.name}"


@pytest.mark.parametrize("model", [Study, Arm, Budget, Quick, Optimiser, Schedule, Pair, Interaction, Claim, Reported])
def test_examples_are_values_of_their_keys(model: type[BaseModel]) -> None:
    for field in model.model_fields.values():
        for example in field.examples or ():
            kind: Any = Annotated[field.annotation, "", *field.metadata]
            TypeAdapter(kind).validate_python(example)


def test_types_defaults_and_bounds_are_those_of_the_models() -> None:
    seeds = key("", "seeds")
    assert seeds.type == "whole number, at least 1, at most 10,000"
    assert seeds.required
    assert key("optimiser.schedule", "floor").default == 0.01
    assert '"adamw"' in key("optimiser", "kind").type
    assert key("", "grid").type == "table (list (number))"
    for table in ("", "arms"):
        assert key(table, "name").type.endswith("of letters, digits, '.', '_' and '-', with a letter or digit in front")


def test_what_overrides_a_key_is_found_by_its_name() -> None:
    assert key("", "seeds").overridden_by == ("`seeds` of `[quick]`", "`--seeds`")
    assert "`protocol` of an arm" in key("", "protocol").overridden_by
    assert "`margin` of a comparison" in key("", "margin").overridden_by
    assert "`epochs_times` of an arm" in key("budget", "epochs").overridden_by
    assert key("", "name").overridden_by == ()
    (optimiser,) = (table for table in tables() if table.name == "optimiser")
    assert "`optimiser` of an arm" in optimiser.overridden_by


def test_each_kind_of_comparison_has_a_table() -> None:
    kinds = [table.kind for table in tables() if table.name == "comparisons"]
    assert kinds == ["pair", "interaction", "setting", "order", "agreement"]
