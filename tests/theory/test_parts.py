from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.errors import TiebreakError
from tiebreak.layers import taylor
from tiebreak.study import registry
from tiebreak.theory.part_types import QUANTITIES, FormulaPart
from tiebreak.theory.parts import PARTS, find_part

small = st.integers(1, 30)


@given(small, st.integers(1, 8))
def test_heads_have_3_d_squared_parameters_however_many(size: int, heads: int) -> None:
    sizes = {"d": size * heads, "h": heads}
    assert PARTS["multi-head"].value("parameters", sizes) == 3 * (size * heads) ** 2
    assert PARTS["single-head"].value("parameters", {"d": size * heads}) == 3 * (size * heads) ** 2
    assert PARTS["multi-head"].multiply_adds == PARTS["single-head"].multiply_adds


def test_a_streaming_state_grows_with_softmax_and_not_with_taylor() -> None:
    states = [[PARTS[name].value("state", {"L": length}) for length in (10, 100)] for name in ("attention", "taylor")]
    assert states[0][1] == 10 * states[0][0]
    assert states[1][1] == states[1][0] == 65 * taylor.feature_size(64, 3)


@pytest.mark.parametrize("part", PARTS.values(), ids=list(PARTS))
def test_every_part_can_be_asked_for_its_defaults(part: FormulaPart) -> None:
    found = find_part(part.name)
    assert isinstance(found, FormulaPart)
    assert found is part
    assert found.vary in found.variables
    assert all(found.value(quantity) >= 0 for quantity in QUANTITIES)
    assert found.value("multiply_adds") > 0


@pytest.mark.parametrize("name", registry.DESIGNS)
def test_every_design_of_the_catalog_is_a_part_with_or_without_formulas(name: str) -> None:
    part = find_part(name)
    assert isinstance(part, FormulaPart) == (name in PARTS)
    assert part.vary in part.variables
    assert part.family in (None, registry.DESIGNS[name].family)


def test_a_mistyped_name_gets_the_nearest_one() -> None:
    with pytest.raises(TiebreakError, match=r"atention.*'attention'"):
        find_part("atention")
    with pytest.raises(TiebreakError, match="'speech-lstm'"):
        find_part("speech-lsmt")


@pytest.mark.parametrize("part", PARTS.values(), ids=list(PARTS))
def test_reports_are_named_as_reports(part: FormulaPart) -> None:
    words = part.line.replace("(", " ").split()
    for place, word in enumerate(words):
        if word.rstrip(").,") in ("R0", "R1", "R2", "R3", "R4"):
            assert {"report", "reports", "and"} & set(words[:place])
