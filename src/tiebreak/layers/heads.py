"""Single- and multi-head attention, over the sequence itself or over another one.

    head_i = attend(x Wq_i^T, m Wk_i^T, m Wv_i^T),   y = [head_1 ... head_h] Wo^T

x [B, Lq, d] queries, m [B, Lk, e] the memory (x itself unless given), Wq [d, d], Wk and Wv [d, e], Wo [d, d]; head i
owns the rows i D to (i + 1) D - 1 of the first three, D = d / h. So the number of heads changes neither the parameters
(3 d^2 for h = 1 and for any h, without output projection and biases) nor the multiply-adds, d^2 per element for each
projection and Lq Lk d for each of the two products of attention: only that h softmaxes of Lq x Lk are taken, not one.
A bias of the keys adds one number to all the scores of a query, which softmax cancels: `bias="not-keys"` drops it.

With `kind="taylor"` the weights are those of `tiebreak.layers.taylor`, linear in length. Weights start as those of
`nn.Linear`; with them copied, this is `nn.MultiheadAttention`, whose masks mean the opposite: here True allows.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.errors import TiebreakError, nearest
from tiebreak.layers.attention import attend, attend_naive

KINDS = ("softmax", "taylor")


class KeyValues(NamedTuple):
    """Projected keys and values [B, h, Lk, D], which a decoder caches instead of projecting them at every step."""

    keys: Tensor
    values: Tensor


class MultiHead(nn.Module):
    """The layer. `width` is d, `memory_width` is e (d unless given); `terms` are those of kind "taylor".

    Everywhere `real` [B, Lk] says which keys are not padding, and `mask` which pairs are allowed: [Lq, Lk] or
    [B, Lq, Lk] for all heads alike, [B, h, Lq, Lk] for each its own.
    """

    def __init__(
        self,
        width: int,
        heads: int = 1,
        *,
        kind: str = "softmax",
        terms: int = 3,
        output_projection: bool = True,
        bias: Literal["all", "not-keys", "none"] = "all",
        memory_width: int | None = None,
    ) -> None:
        super().__init__()
        if heads < 1 or width < 1 or width % heads:
            raise TiebreakError(f"a width of {width} cannot be shared by {heads} heads: it must be a multiple of them")
        if kind not in KINDS:
            raise TiebreakError(f"unknown kind of attention {kind!r}: {nearest(kind, KINDS)}")
        self.width, self.heads, self.kind, self.terms = width, heads, kind, terms
        self.memory_width = width if memory_width is None else memory_width
        self.query = nn.Linear(width, width, bias=bias != "none")
        self.key = nn.Linear(self.memory_width, width, bias=bias == "all")
        self.value = nn.Linear(self.memory_width, width, bias=bias != "none")
        self.output = nn.Linear(width, width, bias=bias != "none") if output_projection else nn.Identity()

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        causal: bool = False,
        real: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """x [B, Lq, d] to y [B, Lq, d]. A query without an allowed key gets a context of zeros."""
        memory = x if memory is None else memory
        _check(x, self.width, "the queries")
        _check(memory, self.memory_width, "the memory")
        return self.attend_to(x, self.project_memory(memory), causal=causal, real=real, mask=mask)

    def project_memory(self, memory: Tensor) -> KeyValues:
        """The keys and values of a memory [B, Lk, e], for any number of calls of `attend_to`."""
        return KeyValues(self._split(self.key(memory)), self._split(self.value(memory)))

    def attend_to(
        self,
        x: Tensor,
        memory: KeyValues,
        *,
        causal: bool = False,
        real: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """What `forward` computes, from keys and values that are already projected."""
        q, (k, v) = self._split(self.query(x)), memory
        if x.shape[:-2] != k.shape[:-3]:
            raise TiebreakError(
                f"queries come in a batch of {list(x.shape[:-2])} and keys in {list(k.shape[:-3])}; they must be equal"
            )
        if real is not None and (real.dtype != torch.bool or real.shape != (*k.shape[:-3], k.shape[-2])):
            raise TiebreakError(
                f"`real` is {real.dtype} {list(real.shape)}; it must be boolean {[*k.shape[:-3], k.shape[-2]]}, "
                "True for each key that is not padding"
            )
        if self.kind == "taylor":
            if mask is not None:
                raise TiebreakError(
                    "Taylor attention has no weight per pair to mask; it takes `causal` and `real` only"
                )
            from tiebreak.layers import taylor

            padding = None if real is None else real.unsqueeze(-2).expand(k.shape[:-1])
            return self._join(taylor.attend(q, k, v, terms=self.terms, causal=causal, mask=padding))
        return self._join(attend(q, k, v, mask=_pairs(mask, real, x.ndim), causal=causal))

    def step(self, x: Tensor, past: KeyValues | None = None, *, real: Tensor | None = None) -> tuple[Tensor, KeyValues]:
        """Causal self-attention continued: T new elements x [B, T, d] after a past of P, and the past that follows.

        `real` [B, P + T] covers the past too. Taylor attention goes one element at a time after the first call here,
        and its memory grows as softmax's does; the state that does not grow is that of `taylor.step`.
        """
        _check(x, self.width, "the queries")
        if past is None:
            now = self.project_memory(x)
            return self.attend_to(x, now, causal=True, real=real), now
        now = KeyValues(*(torch.cat(pair, dim=-2) for pair in zip(past, self.project_memory(x), strict=True)))
        new, total = x.shape[-2], now.keys.shape[-2]
        if new == 1:
            return self.attend_to(x, now, real=real), now
        if self.kind == "taylor":
            raise TiebreakError(f"Taylor attention continues one element at a time, not {new}")
        allowed = torch.ones(new, total, dtype=torch.bool, device=x.device).tril(total - new)
        return self.attend_to(x, now, real=real, mask=allowed), now

    def _split(self, x: Tensor) -> Tensor:
        """[B, L, d] to [B, h, L, D]."""
        return x.reshape(*x.shape[:-1], self.heads, self.width // self.heads).transpose(-2, -3)

    def _join(self, x: Tensor) -> Tensor:
        return self.output(x.transpose(-2, -3).flatten(-2))  # type: ignore[no-any-return]


def multi_head_naive(
    layer: MultiHead,
    x: Tensor,
    memory: Tensor | None = None,
    *,
    causal: bool = False,
    real: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The formula of the softmax kind as it stands, one head after the other: the reference."""
    memory = x if memory is None else memory
    pairs = _pairs(mask, real, x.ndim)
    out = []
    for head in range(layer.heads):
        rows = slice(head * layer.width // layer.heads, (head + 1) * layer.width // layer.heads)
        q, k, v = (
            F.linear(source, part.weight[rows], None if part.bias is None else part.bias[rows])
            for source, part in ((x, layer.query), (memory, layer.key), (memory, layer.value))
        )
        own = pairs
        if pairs is not None and pairs.ndim > x.ndim:
            own = pairs.select(-3, head if pairs.shape[-3] > 1 else 0)
        out.append(attend_naive(q, k, v, mask=own, causal=causal))
    return layer.output(torch.cat(out, dim=-1))  # type: ignore[no-any-return]


def _pairs(mask: Tensor | None, real: Tensor | None, axes: int) -> Tensor | None:
    """Both masks as one that broadcasts to [B, h, Lq, Lk]; `axes` is the number of axes of x."""
    if mask is not None and 2 < mask.ndim <= axes:
        mask = mask.unsqueeze(-3)
    if real is None:
        return mask
    keys = real[..., None, None, :]
    return keys if mask is None else keys & mask


def _check(x: Tensor, width: int, name: str) -> None:
    if not x.is_floating_point():
        raise TiebreakError(f"{name} are {x.dtype}; attention needs floating-point numbers")
    if x.ndim < 2 or x.shape[-1] != width or x.shape[-2] == 0:
        raise TiebreakError(f"{name} need the axes [batch, length, {width}], and have {list(x.shape)}")
