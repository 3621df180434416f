from __future__ import annotations

import pytest
import sympy  # type: ignore[import-untyped]

from tiebreak.theory import growth, symbolic
from tiebreak.theory.part_types import FormulaPart
from tiebreak.theory.parts import PARTS

D, K, L = (symbolic.symbol(name) for name in "DKL")


@pytest.mark.parametrize(
    ("part", "quantity", "variable", "expected"),
    [
        ("attention", "multiply_adds", "L", "O(L²)"),
        ("attention", "multiply_adds", "D", "O(D)"),
        ("attention", "activations", "L", "O(L)"),
        ("attention-naive", "activations", "L", "O(L²)"),
        ("taylor", "multiply_adds", "L", "O(L)"),
        ("taylor-causal", "multiply_adds", "L", "O(L)"),
        ("taylor", "multiply_adds", "D", "O(Dᴷ⁻¹)"),
        ("taylor", "multiply_adds", "K", "O(Kᴰ)"),
        ("taylor-full", "multiply_adds", "D", "O(Dᴷ⁻¹)"),
        ("taylor-full", "multiply_adds", "K", "O(Dᴷ)"),
        ("taylor", "state", "L", "O(1)"),
        ("multi-head", "multiply_adds", "d", "O(d²)"),
        ("multi-head", "multiply_adds", "h", "O(1)"),
        ("pixels", "multiply_adds", "H", "O(H²)"),
        ("conv2d", "multiply_adds", "M", "O(M)"),
        ("lstm", "multiply_adds", "H", "O(H²)"),
        ("graph", "multiply_adds", "E", "O(E)"),
        ("conv-net", "parameters", "H", "O(H)"),
        ("dense-net", "parameters", "H", "O(H²)"),
        ("cnn-pool", "multiply_adds", "W", "O(W)"),
        ("mlp", "parameters", "H", "O(H)"),
    ],
)
def test_big_o(part: str, quantity: str, variable: str, expected: str) -> None:
    found = PARTS[part]
    assert growth.order(getattr(found, quantity), variable, found.sizes()) == expected


@pytest.mark.parametrize("part", PARTS.values(), ids=list(PARTS))
def test_the_exponent_is_that_of_doubling(part: FormulaPart) -> None:
    """An independent check: how much a formula grows from a large size to twice that size."""
    for variable, each in part.variables.items():
        if variable in "KMNsEn":  # not powers, or bounded by another size
            continue
        grown = growth.big_o(part.multiply_adds, variable, part.sizes())
        exponent = sympy.degree(grown.subs({symbolic.symbol("K"): 3}), symbolic.symbol(variable)) if grown != 1 else 0
        near, far = (part.value("multiply_adds", {variable: each.default * 2**n}) for n in (24, 25))
        assert far / near == pytest.approx(2.0 ** int(exponent), rel=0.01)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (L * (4 * D + 1), "L (4 D + 1)"),
        (sympy.floor((L - D + 1) / 2), "⌊(L - D + 1)/2⌋"),
        (symbolic.feature_size(D, K), "C(D + K - 1, K - 1)"),
        (2 * L * symbolic.feature_size(D, K, symmetric=False), "2 L Σ(n<K) Dⁿ"),
        (sympy.Mod(L, 256) ** 2, "(L mod 256)²"),
        (sympy.ceiling(L / 2) + sympy.Min(L, D), "⌈L/2⌉ + min(D, L)"),
        (D ** (L + 1), "D^(L+1)"),
        (L**12, "L¹²"),
        (L / D, "L/D"),
        (0, "0"),
    ],
)
def test_formulas_on_a_line(expression: object, expected: str) -> None:
    assert growth.line(expression) == expected


def test_hidden_units_that_were_rounded_have_a_letter() -> None:
    (formula,), hidden = growth.without_rounding(PARTS["mlp"].multiply_adds)
    assert growth.line(formula) == "C H W h + 120 Y + 120 h"
    assert growth.line(hidden).startswith("max(1, round(")
    assert growth.without_rounding(L)[1] is None
