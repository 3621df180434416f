from __future__ import annotations

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.theory.part_types import QUANTITIES, FormulaPart, Part, Variable
from tiebreak.theory.parts import PARTS
from tiebreak.theory.symbolic import evaluate

PART = Part(
    name="thing", line="", variables={"L": Variable("length", 8), "K": Variable("terms", 3, 2)}, vary="L", span=(8, 16)
)


def test_sizes_are_the_given_ones_and_the_defaults() -> None:
    assert PART.sizes() == {"L": 8, "K": 3}
    assert PART.sizes({"K": 5}) == {"L": 8, "K": 5}


def test_wrong_variables_and_sizes_are_refused() -> None:
    with pytest.raises(TiebreakError, match=r"thing.*'X'.*L \(length\), K \(terms\)"):
        PART.sizes({"X": 3})
    with pytest.raises(TiebreakError, match=r"K = 1 .*2 or more"):
        PART.sizes({"K": 1})


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_a_value_is_the_formula_at_these_sizes(quantity: str) -> None:
    part: FormulaPart = PARTS["taylor"]
    sizes = {"L": 5, "D": 3, "V": 2, "K": 3}
    assert part.value(quantity, sizes) == evaluate(getattr(part, quantity), sizes)
    assert part.value(quantity) == evaluate(getattr(part.costs, quantity), part.sizes())
