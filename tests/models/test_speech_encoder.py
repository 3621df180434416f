from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tiebreak.layers.dropout import keyed
from tiebreak.models.speech_encoder import Block, Encoder, convolve, sinusoids


@settings(max_examples=25, deadline=None)
@given(length=st.integers(1, 12), channels=st.integers(1, 5), stride=st.integers(1, 2), batch=st.integers(1, 3))
def test_the_convolution_is_torchs_with_its_gradients(length: int, channels: int, stride: int, batch: int) -> None:
    conv = nn.Conv1d(channels, 4, 3, padding=1, stride=stride).double()
    x = torch.randn(batch, length, channels, dtype=torch.float64, requires_grad=True)
    found, expected = convolve(x, conv), conv(x.mT).mT
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    above, leaves = torch.randn_like(found), [x, *conv.parameters()]
    for one, other in zip(*(torch.autograd.grad(each, leaves, above) for each in (found, expected)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-12)


def test_positions_are_sines_then_cosines_from_the_fastest_to_the_slowest() -> None:
    places = sinusoids(5, 200, torch.zeros((), dtype=torch.float64))
    assert places.shape == (5, 200)
    for frame in range(5):
        assert float(places[frame, 0]) == pytest.approx(math.sin(frame))
        assert float(places[frame, 99]) == pytest.approx(math.sin(frame / 3000))
        assert float(places[frame, 100]) == pytest.approx(math.cos(frame))


def test_the_encoder_is_what_the_reports_describe() -> None:
    """Written out with torch's own layers."""
    encoder = Encoder(6, 16).double().eval()
    features = torch.randn(3, 21, 6, dtype=torch.float64)
    x = nn.functional.gelu(encoder.second(nn.functional.gelu(encoder.first(features.mT)))).mT
    x = x + sinusoids(11, 16, x)
    for block in encoder.blocks:
        assert isinstance(block, Block)
        layer = block.attention
        queries = block.norm(x)
        heads = [part(queries).unflatten(-1, (2, 8)).transpose(1, 2) for part in (layer.query, layer.key, layer.value)]
        scores = (heads[0] * 8**-0.25) @ (heads[1] * 8**-0.25).mT
        x = x + layer.output((scores.softmax(-1) @ heads[2]).transpose(1, 2).flatten(-2))
        x = x + block.output(nn.functional.gelu(block.hidden(block.norm_hidden(x))))
    memory, real = encoder(features)
    assert real is None
    torch.testing.assert_close(memory, encoder.norm(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["softmax", "taylor"])
def test_attention_weights_are_those_that_make_the_output(kind: str) -> None:
    block = Block(8, kind).double()
    x, memory = torch.randn(2, 3, 8).double(), torch.randn(2, 5, 8).double()
    real = torch.tensor([[True] * 5, [True, True, False, False, False]])
    keys = block.attention.project_memory(memory)
    values = torch.eye(5, dtype=torch.float64).repeat(1, 1, 1)[:, None].expand(2, 2, 5, 5)  # one-hot: weights come out
    layer = block.attention
    queries = layer._split(layer.query(block.norm(x)))
    from tiebreak.layers import attention, taylor

    if kind == "softmax":
        each = attention.attend(queries, keys.keys, values, mask=real[:, None, None])
    else:
        each = taylor.attend(queries, keys.keys, values, mask=real[:, None].expand(2, 2, 5))
    torch.testing.assert_close(block.weights(x, keys, real=real), each.mean(dim=1), rtol=1e-10, atol=1e-12)


def test_without_augmentation_nothing_is_drawn() -> None:
    assert not keyed(Encoder(5, 8))
    assert len(keyed(Encoder(5, 8, augment=2))) == 1
