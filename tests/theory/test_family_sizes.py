from __future__ import annotations

import dataclasses

import pytest

from tiebreak.models.design import SHAPES
from tiebreak.study import registry
from tiebreak.theory.family_sizes import FAMILIES, without_formula


@pytest.mark.parametrize("family", FAMILIES)
def test_variables_are_fields_of_the_familys_shape(family: str) -> None:
    sizes = FAMILIES[family]
    assert sizes.variables.keys() == sizes.fields.keys()
    assert sizes.vary in sizes.variables
    fields = {each.name: each for each in dataclasses.fields(SHAPES[family])}
    required = {name for name, each in fields.items() if each.default is dataclasses.MISSING}
    assert required <= set(sizes.fields.values()) <= set(fields)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_default_range_begins_at_the_default(family: str) -> None:
    sizes = FAMILIES[family]
    assert sizes.span[0] == sizes.variables[sizes.vary].default
    assert all(variable.default >= variable.least for variable in sizes.variables.values())


def test_designs_whose_name_is_taken_are_left_out() -> None:
    everything = {name for name, design in registry.DESIGNS.items() if design.family in FAMILIES}
    assert without_formula(()).keys() == everything
    assert without_formula(["lstm"]).keys() == everything - {"lstm"}
    assert without_formula(())["gcn"].family == "node-classifier"
