"""Users' networks with torch's attention and transformer layers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from support.zoo import WIDTH, Net, trains
from tiebreak.models.design import Images


@trains(draws=True)
class MultiHead(Net):
    def more(self) -> None:
        self.attention = nn.MultiheadAttention(2, 2, dropout=0.3, batch_first=True)

    def middle(self, x: Any) -> Any:
        rows = x.unflatten(1, (4, 2))
        return self.attention(rows, rows, rows)[0].flatten(1)


@trains()
class MultiHeadWithoutDropout(MultiHead):
    def more(self) -> None:
        self.attention = nn.MultiheadAttention(2, 2, batch_first=True)


@trains()
class MultiHeadMasks(Net):
    """Keys of another width, a causal mask, padding that depends on the values, and no weights asked for."""

    def more(self) -> None:
        self.attention = nn.MultiheadAttention(2, 2, kdim=4, vdim=4, add_zero_attn=True, add_bias_kv=True)

    def middle(self, x: Any) -> Any:
        queries, keys = x.unflatten(1, (4, 2)).transpose(0, 1), x.unflatten(1, (2, 4)).transpose(0, 1)
        padding = torch.zeros(len(x), 2, dtype=x.dtype, device=x.device).masked_fill(x[:, ::4] < 0, -torch.inf)
        mask = torch.ones(4, 2, dtype=torch.bool, device=x.device).triu(1).float().mul(-1e9).to(x.dtype)
        found, _ = self.attention(queries, keys, keys, padding, need_weights=False, attn_mask=mask)
        return found.transpose(0, 1).flatten(1)


@trains(draws=True)
class EncoderLayer(Net):
    def more(self) -> None:
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.2, batch_first=True)

    def middle(self, x: Any) -> Any:
        return self.layer(x.unflatten(1, (2, 4))).flatten(1)


@trains()
class EncoderDecoder(Net):
    def more(self) -> None:
        how: Any = {"dropout": 0.0, "activation": "gelu", "norm_first": True}
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, **how), 1, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, **how), 1)

    def middle(self, x: Any) -> Any:
        rows = x.unflatten(1, (2, 4)).transpose(0, 1)
        mask = nn.Transformer.generate_square_subsequent_mask(2, device=x.device, dtype=x.dtype)
        return self.decoder(rows, self.encoder(rows), tgt_mask=mask, tgt_is_causal=True).transpose(0, 1).flatten(1)


@trains(draws=True)
class DotProductAttention(Net):
    def middle(self, x: Any) -> Any:
        rows = x.unflatten(1, (4, 2))
        p = 0.3 if self.training else 0.0
        return F.scaled_dot_product_attention(rows, rows, rows, dropout_p=p, is_causal=True).flatten(1)


@trains()
class GroupedQueries(Net):
    """Two heads of queries share one of keys."""

    def middle(self, x: Any) -> Any:
        rows = x.unflatten(1, (2, 2, 2))
        found = F.scaled_dot_product_attention(rows, rows[:, :1], rows[:, :1], scale=0.3, enable_gqa=True)
        return found.flatten(1)


@trains()
class VisionTransformer(nn.Module):
    """Patches of 3 x 3, a class token, places, one encoder layer, layer normalisation."""

    def __init__(self, shape: Images) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, 3, stride=3)
        self.token, self.places = nn.Parameter(torch.zeros(1, 1, WIDTH)), nn.Parameter(torch.rand(1, 5, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, shape.classes)

    def forward(self, images: Any) -> Any:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.places
        return self.out(self.encoder(x)[:, 0])


@trains()
class EncoderMask(Net):
    """A mask without `is_causal`: torch looks at its values, to tell a causal one."""

    def more(self) -> None:
        layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(2))

    def middle(self, x: Any) -> Any:
        rows = x.unflatten(1, (2, 4))
        made = nn.Transformer.generate_square_subsequent_mask(2, device=x.device, dtype=x.dtype)
        return (self.encoder(rows, mask=self.mask) + self.encoder(rows, mask=made)).flatten(1)


@trains()
class DecoderMask(Net):
    def more(self) -> None:
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, 0.0, batch_first=True), 1)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(2))

    def middle(self, x: Any) -> Any:
        rows = x.unflatten(1, (2, 4))
        return self.decoder(rows, rows, tgt_mask=self.mask).flatten(1)


@trains(draws=True)
class QueriesWithoutKeys(Net):
    """Padding on the left and a causal mask: the first query may look at nothing, and gets zeros."""

    def more(self) -> None:
        self.attention = nn.MultiheadAttention(2, 1, dropout=0.2, batch_first=True)

    def middle(self, x: Any) -> Any:
        rows, padding = x.unflatten(1, (4, 2)), torch.zeros(len(x), 4, dtype=torch.bool, device=x.device)
        padding = padding.index_fill(1, torch.tensor(0, device=x.device), True)
        later = torch.ones(4, 4, dtype=torch.bool, device=x.device).triu(1)
        return self.attention(rows, rows, rows, padding, need_weights=False, attn_mask=later)[0].flatten(1)
