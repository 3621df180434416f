from __future__ import annotations

import doctest
from importlib import import_module
from math import comb

import pytest
import sympy  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.cost.formulas import conv_parameters, conv_size, linear_parameters
from tiebreak.errors import TiebreakError
from tiebreak.layers import taylor
from tiebreak.theory import symbolic
from tiebreak.theory.parts import PARTS, QUANTITIES, find_part

small = st.integers(1, 30)
MODULES = (
    "theory.parts",
    "theory.growth",
    "theory.fit",
    "theory.sweep",
    "report.terminal.cost_table",
    "report.figures.cost_plot",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    result = doctest.testmod(import_module(f"tiebreak.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("cnn-pool", 224_892), ("cnn-strided", 224_892), ("cnn-pool-unpadded", 168_572), ("cnn-kuzushiji", 420_906)],
)
def test_designs_have_the_parameters_of_the_reports(name: str, parameters: int) -> None:
    assert PARTS[name].value("parameters") == parameters


@given(small, st.integers(1, 8))
def test_heads_have_3_d_squared_parameters_however_many(size: int, heads: int) -> None:
    sizes = {"d": size * heads, "h": heads}
    assert PARTS["multi-head"].value("parameters", sizes) == 3 * (size * heads) ** 2
    assert PARTS["single-head"].value("parameters", {"d": size * heads}) == 3 * (size * heads) ** 2
    assert PARTS["multi-head"].multiply_adds == PARTS["single-head"].multiply_adds


@given(st.integers(1, 40), st.sampled_from([1, 3, 5]))
def test_feature_sizes(d: int, terms: int) -> None:
    symmetric, full = (
        symbolic.evaluate(symbolic.feature_size(symbolic.symbol("D"), symbolic.symbol("K"), kind), {"D": d, "K": terms})
        for kind in (True, False)
    )
    assert symmetric == comb(d + terms - 1, terms - 1) == taylor.feature_size(d, terms)
    assert full == sum(d**n for n in range(terms)) == taylor.feature_size(d, terms, symmetric=False)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(5, 30), st.integers(5, 30))
def test_convolution_against_the_fully_connected_net(M: int, N: int, H: int, W: int) -> None:
    sizes, hidden = {"H": H, "W": W, "M": M, "N": N}, ((H - M + 1) // 2) * ((W - N + 1) // 2)
    assert PARTS["conv-net"].value("parameters", sizes) == M * N + 3 * hidden
    assert PARTS["dense-net"].value("parameters", sizes) == (H * W + 3) * hidden


@given(small, small, st.integers(1, 5), st.integers(1, 3), st.integers(0, 2))
def test_symbols_say_what_the_formulas_of_numbers_say(a: int, b: int, kernel: int, stride: int, padding: int) -> None:
    x, k, s, z = (symbolic.symbol(name) for name in "HMsz")
    sizes = {"H": a + 5, "M": kernel, "s": stride, "z": padding}
    found = symbolic.evaluate(symbolic.side(x, k, s, z), sizes)
    assert found == conv_size(a + 5, kernel, stride=stride, padding=padding)
    assert symbolic.linear(a, b).parameters == linear_parameters(a, b)
    assert symbolic.conv2d(a, 9, 9, b, kernel, kernel).parameters == conv_parameters(a, b, kernel)


def test_a_net_is_the_sum_of_its_layers() -> None:
    both = symbolic.total(symbolic.linear(3, 5), symbolic.linear(5, 2))
    assert both == (3 * 5 + 5 + 5 * 2 + 2, 3 * 5 + 5 * 2, 3 + 5, 0)


@pytest.mark.parametrize("value", [0.5, 1.5, 2.5, 2.6, -0.5])
def test_rounding_is_pythons(value: float) -> None:
    assert symbolic.Nearest(sympy.Rational(value)) == round(value)


def test_a_streaming_state_grows_with_softmax_and_not_with_taylor() -> None:
    states = [[PARTS[name].value("state", {"L": length}) for length in (10, 100)] for name in ("attention", "taylor")]
    assert states[0][1] == 10 * states[0][0]
    assert states[1][1] == states[1][0] == 65 * taylor.feature_size(64, 3)


@pytest.mark.parametrize("part", PARTS.values(), ids=list(PARTS))
def test_every_part_can_be_asked_for_its_defaults(part: object) -> None:
    found = find_part(part.name)  # type: ignore[attr-defined]
    assert found is part
    assert found.vary in found.variables
    assert all(found.value(quantity) >= 0 for quantity in QUANTITIES)
    assert found.value("multiply_adds") > 0


def test_wrong_names_and_sizes_are_refused() -> None:
    with pytest.raises(TiebreakError, match="did you mean 'attention'"):
        find_part("atention")
    with pytest.raises(TiebreakError, match=r"no variable 'X'; it has L \(length\), D"):
        PARTS["attention"].value("parameters", {"X": 3})
    with pytest.raises(TiebreakError, match="D = 0 is too small; it should be 1 or more"):
        PARTS["attention"].sizes({"D": 0})
