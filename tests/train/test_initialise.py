from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch import nn

from tiebreak.errors import TiebreakError
from tiebreak.study.base import Init
from tiebreak.train.initialise import initialise


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Embedding(5, 3), nn.Linear(9, 9))


@pytest.mark.parametrize("init", get_args(Init))
def test_weights_are_those_of_torch_and_biases_zero(init: Init) -> None:
    first, other = network(), network()
    before = {name: values.detach().clone() for name, values in first.state_dict().items()}
    initialise(first, init, 3)
    initialise(other, init, 3)
    after, again = first.state_dict(), other.state_dict()
    for name in ("0.weight", "3.weight"):
        assert not torch.equal(after[name], before[name])
        assert torch.equal(after[name], again[name])  # the same key, the same weights
    assert not after["0.bias"].any()
    assert not after["3.bias"].any()
    assert all(torch.equal(after[name], before[name]) for name in ("1.weight", "1.bias", "2.weight"))
    if init == "orthogonal":
        torch.testing.assert_close(after["3.weight"] @ after["3.weight"].T, torch.eye(9))


def test_a_design_without_matrices_is_refused() -> None:
    with pytest.raises(TiebreakError, match="no weight matrices"):
        initialise(nn.LayerNorm(3), "orthogonal", 0)
