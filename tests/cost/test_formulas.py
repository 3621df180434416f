from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tiebreak.cost.formulas import conv_parameters, conv_size, linear_parameters
from tiebreak.errors import TiebreakError


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 4), st.integers(0, 3), st.integers(1, 3))
def test_conv_size_is_that_of_torch(size: int, kernel: int, stride: int, padding: int, dilation: int) -> None:
    layer = nn.Conv1d(1, 1, kernel, stride=stride, padding=padding, dilation=dilation)
    if size + 2 * padding < dilation * (kernel - 1) + 1:
        with pytest.raises(TiebreakError, match="smaller than"):
            conv_size(size, kernel, stride=stride, padding=padding, dilation=dilation)
    else:
        expected = layer(torch.zeros(1, 1, size)).shape[-1]
        assert conv_size(size, kernel, stride=stride, padding=padding, dilation=dilation) == expected


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5))
def test_parameters_are_those_of_torch(inputs: int, outputs: int, kernel: int) -> None:
    conv, linear = nn.Conv2d(inputs, outputs, kernel), nn.Linear(inputs, outputs)
    assert conv_parameters(inputs, outputs, kernel) == sum(value.numel() for value in conv.parameters())
    assert linear_parameters(inputs, outputs) == sum(value.numel() for value in linear.parameters())
