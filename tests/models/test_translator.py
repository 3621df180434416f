"""The translators: sizes as published, padding that changes nothing, and step by step what the whole gives at once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tiebreak import catalog
from tiebreak.layers.rnn import use_plain_cells
from tiebreak.models.design import PADDING, START, Sentences
from tiebreak.models.translator import TaylorBilinear, Translator
from tiebreak.plan.resolve import complete
from tiebreak.study import registry

REPORTED = Sentences(sources=34, targets=34, source_length=21, target_length=21)
NAMES = [name for name, design in registry.DESIGNS.items() if design.family == "translator"]
every_translator = pytest.mark.parametrize("name", NAMES)


def network(name: str, shape: Sentences = REPORTED, **options: int) -> torch.nn.Module:
    return catalog.DESIGNS[name].network(shape, complete(registry.DESIGNS[name].options, options), 1).double().eval()


def sentences(count: int = 4) -> tuple[Tensor, Tensor]:
    """Sources of different lengths, padded, and targets that begin with the start."""
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(4, 34, (count, 12), generator=generator)
    for row in range(count):
        source[row, 3 + 2 * row :] = PADDING
    target = torch.randint(4, 34, (count, 7), generator=generator)
    target[:, 0] = START
    return source, target


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("translator-plain", 240_162),
        ("translator-attention", 289_442),
        ("translator-taylor", 289_442),
        ("translator-transformer", 265_794),
    ],
)
def test_parameters_are_as_published(name: str, parameters: int) -> None:
    assert sum(each.numel() for each in network(name).parameters()) == parameters


@every_translator
def test_padding_never_changes_an_output(name: str) -> None:
    translator = network(name)
    source, target = sentences()
    with torch.no_grad():
        logits = translator(source, target)
        for row in range(len(source)):
            real = int((source[row] != PADDING).sum())
            alone = translator(source[row : row + 1, :real], target[row : row + 1])
            torch.testing.assert_close(alone[0], logits[row], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["translator-plain", "translator-attention", "translator-taylor"])
def test_masked_cells_are_packed_sequences_in_outputs_and_gradients(name: str) -> None:
    packed, masked = network(name), network(name)
    use_plain_cells(masked, True)
    source, target = sentences()
    losses = [each(source, target).square().mean() for each in (packed, masked)]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-12, atol=0)
    grads = [
        torch.autograd.grad(loss, list(each.parameters())) for loss, each in zip(losses, (packed, masked), strict=True)
    ]
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-13)


def test_the_output_layer_is_the_embedding() -> None:
    translator = network("translator-plain")
    assert not [name for name, _ in translator.named_parameters() if name.startswith("output")]
    source, target = sentences()
    with torch.no_grad():
        before = translator(source, target)
        translator.target.weight.mul_(2.0)  # type: ignore[union-attr,operator]
        assert not torch.allclose(before, translator(source, target))


@pytest.mark.parametrize("name", ["translator-attention", "translator-taylor"])
def test_looks_are_shares_of_what_is_real(name: str) -> None:
    translator = network(name)
    assert isinstance(translator, Translator)
    source, target = sentences()
    with torch.no_grad():
        looks = translator.attention_weights(source, target)
    assert looks is not None
    assert looks.shape == (4, 7, 12)
    torch.testing.assert_close(looks.sum(dim=-1), torch.ones(4, 7, dtype=torch.float64))
    assert (looks.masked_select((source == PADDING)[:, None].expand_as(looks)) == 0).all()


def test_the_shown_taylor_weights_are_those_that_make_the_context() -> None:
    layer = TaylorBilinear(5, 6, 4).double()
    query, memory = torch.randn(2, 3, 5).double(), torch.randn(2, 7, 6).double()
    mask = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    out, weights = layer(query, memory, mask)
    expected = torch.tanh(layer.output(torch.cat([query, weights @ memory], dim=-1)))
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-12)
    leaves = list(layer.parameters())
    for one, other in zip(
        *(torch.autograd.grad(each.sin().sum(), leaves, retain_graph=True) for each in (out, expected)), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-11)
