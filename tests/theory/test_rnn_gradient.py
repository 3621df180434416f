from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tiebreak.errors import TiebreakError
from tiebreak.layers.rnn import Rnn
from tiebreak.theory.rnn_gradient import Weights, cross_entropy, forward, gradient, parameters

BATCH, WORDS, WIDTH, HIDDEN = 3, 11, 5, 7


def make(steps: int, batch: int = BATCH) -> tuple[Weights, Tensor, Tensor, Tensor]:
    torch.manual_seed(steps)
    shapes = ((WORDS, WIDTH), (HIDDEN, HIDDEN), (WIDTH, HIDDEN), (HIDDEN, WORDS), (HIDDEN,), (WORDS,))
    weights = Weights(*(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes))
    words, targets = torch.randint(WORDS, (2, batch, steps))
    return weights, words, targets, torch.rand(batch, HIDDEN, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("steps", range(1, 8))
@pytest.mark.parametrize("batch", [1, 3])
def test_the_hand_derived_gradient_is_autograds(steps: int, batch: int) -> None:
    weights, words, targets, start = make(steps, batch)
    loss = cross_entropy(forward(weights, words, start)[1], targets)
    expected = torch.autograd.grad(loss, [*weights, start])
    value, own, at_start = gradient(weights, words, targets, start)
    assert float((value - loss).detach().abs()) < 1e-12
    for one, two in zip((*own, at_start), expected, strict=True):
        assert one.shape == two.shape
        assert not one.requires_grad
        assert float((one - two).abs().max()) < 1e-12


def test_the_gradient_is_the_slope() -> None:
    """Independent of autograd: the difference of two losses along a direction."""
    weights, words, targets, start = make(4)
    own = gradient(weights, words, targets, start)[1]
    for place, slope in enumerate(own):
        direction = torch.randn_like(slope)
        ends = []
        for step in (1e-5, -1e-5):
            moved = [each.detach().clone() for each in weights]
            moved[place] += step * direction
            ends.append(float(cross_entropy(forward(Weights(*moved), words, start.detach())[1], targets)))
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(float((slope * direction).sum()), rel=1e-6, abs=1e-9)


def test_the_model_is_that_of_the_sigmoid_layer() -> None:
    weights, words, targets, start = make(6)
    layer = Rnn(WIDTH, HIDDEN, "sigmoid").double()
    copied = {
        "weight_ih_l0": weights.inputs.T,  # torch's columns are our rows
        "weight_hh_l0": weights.recurrent.T,
        "bias_ih_l0": weights.hidden_bias,
        "bias_hh_l0": torch.zeros(HIDDEN),
    }
    layer.load_state_dict(copied)
    states, logits = forward(weights, words, start)
    outputs, last = layer(weights.embedding[words], start.unsqueeze(0))
    assert torch.allclose(outputs, states[:, 1:], rtol=0, atol=1e-14)
    assert torch.allclose(last[0], states[:, -1], rtol=0, atol=1e-14)
    assert torch.equal(states[:, 0], start)
    chances = (outputs @ weights.outputs + weights.output_bias).softmax(-1).gather(-1, targets.unsqueeze(-1))
    assert torch.allclose(cross_entropy(logits, targets), -chances.log().mean(), rtol=0, atol=1e-14)


def test_a_window_in_two_halves_is_the_whole_without_the_gradient_between() -> None:
    weights, words, targets, start = make(6)
    states, logits = forward(weights, words, start)
    first = forward(weights, words[:, :2], start)
    second = forward(weights, words[:, 2:], first[0][:, -1])
    assert torch.equal(torch.cat([first[1], second[1]], dim=1), logits)
    whole, early, late = (
        gradient(weights, words[:, part], targets[:, part], begin)[1]
        for part, begin in ((slice(0, 6), start), (slice(0, 2), start), (slice(2, 6), states[:, 2]))
    )
    for name, one, two, both in zip(Weights._fields, early, late, whole, strict=True):
        same = torch.allclose(one * 2 / 6 + two * 4 / 6, both, rtol=0, atol=1e-12)
        assert same == (name in ("outputs", "output_bias"))


def test_words_that_are_not_read_have_no_gradient() -> None:
    weights, words, targets, start = make(2, 1)
    own = gradient(weights, words, targets, start)[1]
    assert set(own.embedding.any(dim=1).nonzero().flatten().tolist()) == set(words.flatten().tolist())


def test_parameters_are_counted() -> None:
    assert parameters(WORDS, WIDTH, HIDDEN) == sum(each.numel() for each in make(1)[0])
    assert parameters(10_000, 256, 512) == 8_083_728
    assert parameters(10_000, 2048, 4096) == 86_619_920


def test_bad_input_is_named() -> None:
    weights, words, targets, start = make(4)
    with pytest.raises(TiebreakError, match=r"the weight 'inputs' must be \[5, 7\], not \[7, 5\]"):
        forward(weights._replace(inputs=weights.inputs.T), words, start)
    for wrong in (words.float(), words[0], words[:, :0]):
        with pytest.raises(TiebreakError, match=r"words must be int64 \[batch, time\]"):
            forward(weights, wrong, start)
    with pytest.raises(TiebreakError, match=r"the state must be floating-point \[3, 7\], not torch\.float64 \[1, 7\]"):
        forward(weights, words, start[:1])
    with pytest.raises(TiebreakError, match=r"targets must be int64 \[3, 4\], not torch\.int64 \[3, 3\]"):
        gradient(weights, words, targets[:, 1:], start)
    for index in (WORDS, -1):
        with pytest.raises(TiebreakError, match=f"word {index} is not in the vocabulary of {WORDS}"):
            forward(weights, words.index_fill(1, torch.tensor([1]), index), start)
        with pytest.raises(TiebreakError, match=f"word {index} is not in the vocabulary of {WORDS}"):
            gradient(weights, words, targets.index_fill(1, torch.tensor([1]), index), start)
