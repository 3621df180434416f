"""Formulas of nets: sums of the formulas of their layers, with the numbers of the reports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.theory import network_costs
from tiebreak.theory.parts import PARTS
from tiebreak.theory.symbolic import evaluate, symbol

small = st.integers(1, 30)
IMAGE = {name: symbol(name) for name in "CHWY"}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("cnn-pool", 224_892), ("cnn-strided", 224_892), ("cnn-pool-unpadded", 168_572), ("cnn-kuzushiji", 420_906)],
)
def test_designs_have_the_parameters_of_the_reports(name: str, parameters: int) -> None:
    assert PARTS[name].value("parameters") == parameters


@given(st.integers(1, 4), st.integers(1, 4), st.integers(5, 30), st.integers(5, 30))
def test_convolution_against_the_fully_connected_net(M: int, N: int, H: int, W: int) -> None:
    sizes, hidden = {"H": H, "W": W, "M": M, "N": N}, ((H - M + 1) // 2) * ((W - N + 1) // 2)
    assert PARTS["conv-net"].value("parameters", sizes) == M * N + 3 * hidden
    assert PARTS["dense-net"].value("parameters", sizes) == (H * W + 3) * hidden


@given(st.sampled_from(sorted(network_costs.CNNS)), st.integers(12, 60), st.integers(12, 60), st.integers(2, 20))
def test_the_mlp_has_nearly_the_parameters_of_what_it_matches(match: str, H: int, W: int, Y: int) -> None:
    sizes = {"C": 1, "H": H, "W": W, "Y": Y}
    target = evaluate(network_costs.cnn(**IMAGE, options=network_costs.CNNS[match]).parameters, sizes)
    found = evaluate(network_costs.mlp(**IMAGE, match=match).parameters, sizes)
    one_unit = H * W + 121
    assert abs(found - target) <= one_unit / 2 or found == one_unit + 121 * Y + 120  # at least one hidden unit


def test_stride_costs_less_work_than_pooling_at_equal_parameters() -> None:
    pool, strided = PARTS["cnn-pool"], PARTS["cnn-strided"]
    assert pool.value("parameters") == strided.value("parameters")
    assert pool.value("multiply_adds") > strided.value("multiply_adds")
    assert pool.value("activations") > strided.value("activations")
