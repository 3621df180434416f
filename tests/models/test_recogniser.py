from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tiebreak.data.speech.alphabet import END
from tiebreak.models import decoding
from tiebreak.models.design import Clips
from tiebreak.models.recogniser import Recogniser, SpeechAttention, SpeechLstm, SpeechTaylor

DESIGNS = [SpeechLstm, SpeechAttention, SpeechTaylor]
Kind = type[SpeechLstm] | type[SpeechAttention] | type[SpeechTaylor]
every = pytest.mark.parametrize("design", DESIGNS)
SHAPE = Clips(mels=6, frames=21, length=9)


def made(design: Kind, strides: int = 1) -> Recogniser:
    torch.manual_seed(0)
    return design(SHAPE, 16, strides).double().eval()


def example(batch: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(batch, SHAPE.frames, SHAPE.mels, generator=generator, dtype=torch.float64)
    given_tokens = torch.randint(0, SHAPE.symbols, (batch, SHAPE.length), generator=generator)
    return features, given_tokens, torch.tensor([21, 8, 1][:batch])


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(
    ("design", "parameters"), [(SpeechLstm, 1_471_235), (SpeechAttention, 1_329_835), (SpeechTaylor, 1_329_835)]
)
def test_it_has_as_many_parameters_as_the_reports_say(design: Kind, parameters: int) -> None:
    network = design(Clips(mels=80, frames=2754, symbols=35, length=98))
    assert count(network) == parameters
    assert count(network.encoder) == 812_800


@every
@pytest.mark.parametrize("told", [True, False])
def test_step_by_step_is_the_whole(design: Kind, told: bool) -> None:
    """Decoding with what is kept equals reading the whole prefix anew at every step."""
    network = made(design)
    features, tokens, frames = example()
    heard = (features, frames) if told else (features,)
    with torch.no_grad():
        state = network.encode(*heard)
        for place in range(SHAPE.length):
            logits, state = network.step(tokens[:, place], state)
            prefix = network(features, tokens[:, : place + 1], *heard[1:])
            torch.testing.assert_close(logits, prefix[:, -1], rtol=1e-10, atol=1e-12)


@every
@pytest.mark.parametrize("strides", [1, 2])
def test_padding_changes_nothing_however_much_there_is_and_whatever_is_in_it(design: Kind, strides: int) -> None:
    network = made(design, strides)
    features, tokens, frames = example()
    with torch.no_grad():
        wanted = network(features, tokens, frames)
        for more in (1, 2, 3, 40):
            padding = torch.full((3, more, SHAPE.mels), 7.0, dtype=torch.float64)
            torch.testing.assert_close(
                network(torch.cat([features, padding], dim=1), tokens, frames), wanted, rtol=1e-10, atol=1e-12
            )
        for row, size in enumerate(frames.tolist()):  # alone, without any padding, and told of none
            alone = network(features[row : row + 1, :size], tokens[row : row + 1])
            torch.testing.assert_close(alone[0], wanted[row], rtol=1e-10, atol=1e-12)


@every
def test_without_frames_padding_counts_as_sound(design: Kind) -> None:
    network = made(design)
    features, tokens, _ = example()
    longer = torch.cat([features, torch.zeros(3, 4, SHAPE.mels, dtype=torch.float64)], dim=1)
    with torch.no_grad():
        assert not torch.allclose(network(features, tokens), network(longer, tokens))


@every
def test_looks_are_means_over_heads_and_miss_the_padding(design: Kind) -> None:
    network = made(design)
    features, tokens, frames = example()
    with torch.no_grad():
        weights = network.attention_weights(features, tokens, frames)
    assert weights.shape == (3, SHAPE.length, 11)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, SHAPE.length, dtype=torch.float64))
    assert (weights >= 0).all()
    assert (weights[1, :, 4:] == 0).all()
    assert (weights[2, :, 1:] == 0).all()


@every
def test_a_beam_of_one_is_greedy_and_a_wider_one_keeps_the_rows_apart(design: Kind) -> None:
    network = made(design)
    features, tokens, frames = example()
    start = torch.zeros_like(tokens[:, 0])
    with torch.no_grad():
        state = network.encode(features, frames)
        greedy = decoding.greedy(network.step, state, start, END, 6)[0]
        assert torch.equal(decoding.beam(network.step, state, start, END, 6, 1)[0], greedy)
        wide = decoding.beam(network.step, state, start, END, 6, 4)[0]
        for row in range(3):
            alone = network.encode(features[row : row + 1], frames[row : row + 1])
            assert torch.equal(decoding.beam(network.step, alone, start[:1], END, 6, 4)[0][0], wide[row])


def test_half_precision_features_are_taken() -> None:
    network = made(SpeechLstm).float()
    features, tokens, frames = example()
    with torch.no_grad():
        rounded = features.half()
        assert torch.equal(network(rounded, tokens, frames), network(rounded.float(), tokens, frames))
