"""Formulas of layers, against real layers of torch and against sums written out by hand."""

from __future__ import annotations

from math import comb

import pytest
import sympy  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tiebreak.cost import measure
from tiebreak.cost.formulas import conv_size
from tiebreak.layers import taylor
from tiebreak.theory import symbolic

small = st.integers(1, 30)


@given(st.integers(1, 40), st.sampled_from([1, 3, 5]))
def test_feature_sizes(d: int, terms: int) -> None:
    symmetric, full = (
        symbolic.evaluate(symbolic.feature_size(symbolic.symbol("D"), symbolic.symbol("K"), kind), {"D": d, "K": terms})
        for kind in (True, False)
    )
    assert symmetric == comb(d + terms - 1, terms - 1) == taylor.feature_size(d, terms)
    assert full == sum(d**n for n in range(terms)) == taylor.feature_size(d, terms, symmetric=False)


@given(small, small, st.integers(1, 5), st.integers(1, 3), st.integers(0, 2))
def test_symbols_say_what_the_formulas_of_numbers_say(a: int, b: int, kernel: int, stride: int, padding: int) -> None:
    x, k, s, z = (symbolic.symbol(name) for name in "HMsz")
    sizes = {"H": a + 5, "M": kernel, "s": stride, "z": padding}
    found = symbolic.evaluate(symbolic.side(x, k, s, z), sizes)
    assert found == conv_size(a + 5, kernel, stride=stride, padding=padding)
    for bias in (True, False):
        assert symbolic.linear(a, b, bias=bias).parameters == measure.parameters(nn.Linear(a, b, bias=bias))
        conv = nn.Conv2d(a, b, kernel, bias=bias)
        assert symbolic.conv2d(a, 9, 9, b, symbolic.Kernel(kernel, kernel), bias=bias).parameters == measure.parameters(
            conv
        )


@given(small, small)
def test_recurrent_layers_have_the_parameters_of_torch(inputs: int, hidden: int) -> None:
    assert symbolic.lstm(7, inputs, hidden).parameters == measure.parameters(nn.LSTM(inputs, hidden))
    assert symbolic.rnn(7, inputs, hidden).parameters == measure.parameters(nn.RNN(inputs, hidden))


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 600))
def test_causal_taylor_attention_costs_no_more_than_twice_the_plain_form(d: int, v: int, length: int) -> None:
    """Within one chunk there is no state at all; over many chunks every element reads and writes it once."""
    plain = symbolic.taylor(length, d, v, 3).multiply_adds
    causal = symbolic.taylor_causal(sympy.Integer(length), d, v, 3).multiply_adds
    if length <= symbolic.TAYLOR_CHUNK:
        assert causal == length**2 * (d + v + 1)
    else:
        assert causal <= plain + length * symbolic.TAYLOR_CHUNK * (d + v + 1)


def test_a_net_is_the_sum_of_its_layers() -> None:
    both = symbolic.total(symbolic.linear(3, 5), symbolic.linear(5, 2))
    assert both == (3 * 5 + 5 + 5 * 2 + 2, 3 * 5 + 5 * 2, 3 + 5, 0)


@pytest.mark.parametrize("value", [0.5, 1.5, 2.5, 2.6, -0.5])
def test_rounding_is_pythons(value: float) -> None:
    assert symbolic.Nearest(sympy.Rational(value)) == round(value)
