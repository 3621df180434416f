from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.models.design import PADDING, Sentences
from tiebreak.models.transformer_translator import TranslatorTransformer, sinusoids


@given(first=st.integers(0, 7), length=st.integers(1, 5), half=st.integers(1, 6))
def test_positions_are_sines_then_cosines_place_by_place(first: int, length: int, half: int) -> None:
    found = sinusoids(first, length, 2 * half, torch.zeros((), dtype=torch.float64))
    assert found.shape == (length, 2 * half)
    for row in range(length):
        for wave in range(half):
            angle = (first + row) * 10_000 ** (-wave / half)
            assert float(found[row, wave]) == pytest.approx(math.sin(angle), abs=1e-12)
            assert float(found[row, half + wave]) == pytest.approx(math.cos(angle), abs=1e-12)


def test_decoding_with_a_cache_has_the_gradients_of_the_whole() -> None:
    network = TranslatorTransformer(Sentences(sources=9, targets=8, source_length=5, target_length=4), 16)
    network.eval().double()
    source, target = torch.tensor([[4, 5, 6, 2, PADDING], [7, 2, 0, 0, 0]]), torch.tensor([[1, 4, 5], [1, 6, 7]])
    whole, state, steps = network(source, target), network.encode(source), []
    for place in range(3):
        logits, state = network.step(target[:, place], state)
        steps.append(logits)
    found = torch.stack(steps, dim=1)
    torch.testing.assert_close(found, whole, rtol=1e-10, atol=1e-12)
    leaves = list(network.parameters())
    for one, other in zip(*(torch.autograd.grad(each.sin().sum(), leaves) for each in (found, whole)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-11)
    assert network.attention_weights(source, target) is None
