from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tiebreak.errors import TiebreakError
from tiebreak.models.design import Words
from tiebreak.models.transformer_language import TaylorTransformer, Transformer

SMALL = Words(words=11, streams=3, window=5)


@pytest.mark.parametrize("design", [Transformer, TaylorTransformer])
def test_a_transformer_writes_from_its_last_window_only(design: type[nn.Module]) -> None:
    network: nn.Module = design(SMALL, width=8, heads=2).eval().double()
    text = torch.randint(0, SMALL.words, (1, 9), generator=torch.Generator().manual_seed(1))
    state = network.begin(1)  # type: ignore[operator]
    for t in range(9):
        logits, state = network.step(text[:, t], state)  # type: ignore[operator]
    torch.testing.assert_close(logits[0], network(text[None, :, 4:])[0, 0, -1])


def test_a_width_without_halves_is_refused() -> None:
    with pytest.raises(TiebreakError, match="use an even one"):
        Transformer(SMALL, width=9, heads=3)


def test_it_is_torchs_encoder_with_the_norm_first() -> None:
    network = Transformer(SMALL, width=8, heads=2, layers=1).eval().double()
    reference = nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, activation=F.gelu, norm_first=True, batch_first=True, dtype=torch.float64
    ).eval()
    block: Any = network.blocks[0]
    attention = block.attention
    with torch.no_grad():
        reference.self_attn.in_proj_weight.copy_(
            torch.cat([attention.query.weight, attention.key.weight, attention.value.weight])
        )
        zeros = torch.zeros(8, dtype=torch.float64)
        reference.self_attn.in_proj_bias.copy_(torch.cat([attention.query.bias, zeros, attention.value.bias]))
        for mine, torchs in (
            (attention.output, reference.self_attn.out_proj),
            (block.hidden, reference.linear1),
            (block.output, reference.linear2),
            (block.norm, reference.norm1),
            (block.norm_hidden, reference.norm2),
        ):
            torchs.weight.copy_(mine.weight)
            torchs.bias.copy_(mine.bias)
        text = torch.randint(0, 11, (1, 3, 5), generator=torch.Generator().manual_seed(0))
        places = torch.arange(5, dtype=torch.float64)[:, None]
        speeds = torch.tensor([10_000 ** (-index / 4) for index in range(4)], dtype=torch.float64)
        positions = torch.cat([(places * speeds).sin(), (places * speeds).cos()], dim=-1)
        x = network.embedding.weight[text[0]] * math.sqrt(8) + positions
        x = reference(x, src_mask=nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64))
        expected = network.norm(x) @ network.embedding.weight.mT + network.bias
        torch.testing.assert_close(network(text)[0], expected, rtol=1e-10, atol=1e-12)
