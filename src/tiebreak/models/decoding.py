"""Decoding: from a model that predicts the next token to whole sentences.

Greedy: y_t = argmax_v p(v | y_1 .. y_{t-1}), until `end`. All sentences of a batch take the same fixed number of steps,
and a mask remembers which have ended: no step asks a tensor whether to go on, so decoding vmaps over runs and traces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

Carry = TypeVar("Carry")  # whatever the model carries from token to token; never looked into


def greedy(
    step: Callable[[Tensor, Carry], tuple[Tensor, Carry]], state: Carry, start: Tensor, end: int, steps: int
) -> tuple[Tensor, Tensor]:
    """The likeliest token at every step: tokens [B, steps] and how many of each row come before its `end` [B].

    `step` takes tokens [B] and a state to logits [B, V] and the next state; the first tokens it is given are `start`.
    A row's first `end` and all after it are `end`; a row that never ends has length `steps`.
    """
    token = start
    ended = torch.zeros_like(start, dtype=torch.bool)
    tokens = []
    for _ in range(steps):
        logits, state = step(token, state)
        token = logits.argmax(dim=-1).masked_fill(ended, end)
        ended = ended | (token == end)
        tokens.append(token)
    rows = torch.stack(tokens, dim=1)
    return rows, (rows != end).sum(dim=1)
