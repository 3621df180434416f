from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tiebreak.cost.formulas import conv_size, run_bytes
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


@given(st.integers(0, 1000), st.integers(0, 3), st.integers(0, 1000))
def test_a_run_holds_values_gradients_and_the_slots_of_its_update_rule(many: int, slots: int, kept: int) -> None:
    assert run_bytes(many, slots, kept) == 4 * (many + many + slots * many) + kept
    assert run_bytes(many, slots, kept, size=8) - kept == 2 * (run_bytes(many, slots, kept) - kept)
