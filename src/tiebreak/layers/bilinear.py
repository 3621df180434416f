"""Bilinear attention: cross-attention of the translator's decoder to the encoder's states.

    z = W q,   p = softmax over the real i of z . h_i,   c = sum_i p_i h_i,   out = tanh(W_o [q; c] + b)

q [B, T, Dq] queries (or [B, Dq], one each), h [B, L, Dm] memory, mask [B, L] True where h_i is real; W [Dm, Dq],
W_o [O, Dq + Dm], b [O]: Dq Dm + O (Dq + Dm + 1) parameters. The scores are not scaled, and the memory is key and value
in one, so W is all that attention itself learns. A row without any real element has weights 0 and context 0.
Source: Luong, Pham and Manning, "Effective approaches to attention-based neural machine translation" (2015), score
"general", without input feeding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tiebreak.errors import TiebreakError


class Bilinear(nn.Module):
    """The layer, with weights that start as those of `nn.Linear`."""

    def __init__(self, query_size: int, memory_size: int, output_size: int) -> None:
        super().__init__()
        if min(query_size, memory_size, output_size) < 1:
            raise TiebreakError(f"sizes must be positive, not {query_size}, {memory_size} and {output_size}")
        self.score = nn.Linear(query_size, memory_size, bias=False)
        self.output = nn.Linear(query_size + memory_size, output_size)

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, O] and weights [B, T, L]; without T where the queries have none.

        Products over the whole batch, not torch's attention kernel, which does not return the weights.
        """
        self._check(query, memory, mask)
        single = query.ndim == memory.ndim - 1
        queries = query.unsqueeze(-2) if single else query
        scores = self.score(queries) @ memory.mT
        if mask is None:
            weights = scores.softmax(dim=-1)
        else:
            # Finite, so that a row without anything real has a softmax, and then dropped, so that its context is 0.
            padded = ~mask.unsqueeze(-2)
            lowest = torch.finfo(scores.dtype).min
            weights = scores.masked_fill(padded, lowest).softmax(dim=-1).masked_fill(padded, 0.0)
        out = torch.tanh(self.output(torch.cat([queries, weights @ memory], dim=-1)))
        return (out.squeeze(-2), weights.squeeze(-2)) if single else (out, weights)

    def naive(self, query: Tensor, memory: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The formula as it stands, a query and a real element at a time: the reference."""
        self._check(query, memory, mask)
        if query.ndim == 2:
            out, weights = self.naive(query.unsqueeze(1), memory, mask)
            return out[:, 0], weights[:, 0]
        outs, all_weights = [], []
        for row, queries in enumerate(query):
            real = range(memory.shape[1]) if mask is None else mask[row].nonzero().flatten().tolist()
            for q in queries:
                z = self.score.weight @ q
                parts = {i: torch.exp(z @ memory[row, i]) for i in real}
                total = sum(parts.values(), z.new_zeros(()))
                p = [parts[i] / total if i in parts else z.new_zeros(()) for i in range(memory.shape[1])]
                c = sum((p[i] * memory[row, i] for i in real), torch.zeros_like(memory[row, 0]))
                outs.append(torch.tanh(self.output.weight @ torch.cat([q, c]) + self.output.bias))
                all_weights.append(torch.stack(p))
        return torch.stack(outs).view(*query.shape[:2], -1), torch.stack(all_weights).view(*query.shape[:2], -1)

    def _check(self, query: Tensor, memory: Tensor, mask: Tensor | None) -> None:
        width, depth = self.score.in_features, self.score.out_features
        if not query.is_floating_point() or not memory.is_floating_point():
            raise TiebreakError(f"queries are {query.dtype} and memory {memory.dtype}; both must be floating-point")
        if memory.ndim != 3 or memory.shape[-1] != depth or memory.shape[1] == 0:
            raise TiebreakError(
                f"the memory must be [batch, length, {depth}] with a length of 1 or more, not {list(memory.shape)}"
            )
        if query.ndim not in (2, 3) or query.shape[-1] != width or 0 in query.shape[1:]:
            raise TiebreakError(
                f"queries must be [batch, {width}] or [batch, length, {width}], not {list(query.shape)}"
            )
        if query.shape[0] != memory.shape[0]:
            raise TiebreakError(f"there are {query.shape[0]} rows of queries and {memory.shape[0]} of memory")
        if mask is not None and (mask.dtype != torch.bool or mask.shape != memory.shape[:2]):
            raise TiebreakError(
                f"the mask is {mask.dtype} {list(mask.shape)}; it must be boolean {list(memory.shape[:2])}, "
                "True where the memory is real"
            )
