"""Decoding: from a model that predicts the next token to whole sentences.

Greedy: y_t = argmax_v p(v | y_1 .. y_{t-1}), until `end`. All sentences of a batch take the same number of steps, and a
mask marks those that have ended. A network alone stops when all have; runs together take every step, since control flow
cannot depend on values under vmap and tracing. The result is the same either way.

Beam: of each sentence the `width` best hypotheses are kept, where greedy keeps one. The score of a hypothesis is

    log p(y_1 .. y_n) / n^penalty        n tokens, its `end` included

(penalty 0: the likeliest sentence; 1: the likeliest per token, which does not favour short ones). One that has ended
keeps its score and its place for as long as no `width` others, ended or still growing, are better. Ties go to the
hypothesis that was better before, then to the larger logit, then to the smaller token. B sentences, W width, V tokens.

Sample: y_t is drawn from softmax(logits / temperature), from the `top_k` likeliest tokens, and from the fewest likely
ones whose probabilities sum to `top_p` (Holtzman et al. 2020); all three together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_map

Carry = TypeVar("Carry")  # whatever the model carries from token to token; greedy never looks into it

GPU_STRIDE = 8  # steps from one look at whether all have ended to the next, on a GPU


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are drawn. Temperature 0 draws the likeliest; `top_k` 0 and `top_p` 1 leave nothing out."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0


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
    for done in range(1, steps + 1):
        logits, state = step(token, state)
        token = logits.argmax(dim=-1).masked_fill(ended, end)
        ended = ended | (token == end)
        tokens.append(token)
        if _all_ended(ended, done):
            break
    # After a stop the last tokens are all `end`, and so would be those of the steps that were not taken.
    rows = torch.stack(tokens + [token] * (steps - len(tokens)), dim=1)
    return rows, (rows != end).sum(dim=1)


def beam(
    step: Callable[[Tensor, Carry], tuple[Tensor, Carry]],
    state: Carry,
    start: Tensor,
    end: int,
    steps: int,
    width: int,
    *,
    penalty: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """The best sentence that a beam of `width` finds: tokens [B, steps] and lengths [B], as from `greedy`.

    `state` is a pytree (tuples, lists, dicts) of tensors whose first axis is the batch, B long: `step` is called with
    tokens [B * W] and a state whose tensors have B * W rows, those of a sentence side by side. A state with the batch
    elsewhere, such as an LSTM's [layers, B, H], is for the caller to transpose. Width 1 is `greedy`, to the token.
    """
    assert width >= 1
    sentence, place = torch.arange(len(start), device=start.device)[:, None], torch.arange(width, device=start.device)
    state = _rows(state, sentence.expand(-1, width))
    token = start[:, None].expand(-1, width)
    tokens = token[:, :, None][:, :, :0]
    ended, counts = torch.zeros_like(token, dtype=torch.bool), torch.zeros_like(token)
    # At first there is one hypothesis, the empty one: its copies must not fill the beam with the same sentence.
    total = torch.zeros(token.shape, device=start.device).masked_fill(place > 0, -torch.inf)
    for done in range(1, steps + 1):
        logits, state = step(token.reshape(-1), state)
        choices, logs = _likeliest(logits.reshape(*token.shape, -1), width)
        # What has ended has one continuation, `end` for nothing.
        stays = torch.zeros_like(logs).masked_fill(torch.arange(logs.shape[-1], device=start.device) > 0, -torch.inf)
        totals = total[..., None] + torch.where(ended[..., None], stays, logs)
        choices = choices.masked_fill(ended[..., None], end)
        counts = counts + ~ended
        scores = totals / counts[..., None].to(totals.dtype) ** penalty
        best = scores.flatten(1).argsort(dim=1, descending=True, stable=True)[:, :width]
        parent = best // logs.shape[-1]
        token, total = choices.flatten(1).gather(1, best), totals.flatten(1).gather(1, best)
        counts = counts.gather(1, parent)
        ended = ended.gather(1, parent) | (token == end)
        tokens = torch.cat([tokens.gather(1, parent[..., None].expand_as(tokens)), token[..., None]], dim=2)
        # All that is kept has ended: nothing grows any more, and the order of what has ended never changes.
        if _all_ended(ended, done):
            break
        state = _rows(state, sentence * width + parent)
    first, left = tokens[:, 0], steps - tokens.shape[2]
    rows = F.pad(first, (0, left), value=end) if left else first
    return rows, (rows != end).sum(dim=1)


def _all_ended(ended: Tensor, done: int) -> bool:
    """Whether a network alone may stop after `done` steps. Never where runs are mapped: theirs end at different steps.

    A GPU would have to be waited for at every step, which can cost more than the steps saved: it is asked now and then.
    """
    # As in `layers.attention`: there is no public name for it. All that we trace is mapped over runs.
    if torch._C._are_functorch_transforms_active() or (ended.is_cuda and done % GPU_STRIDE):
        return False
    return bool(ended.all())


def _likeliest(logits: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The tokens [B, W, min(W, V)] that can be in the next beam, best first, and their log probabilities.

    They are put in order by logits: log probabilities, and more so their sums, round small differences away.
    """
    tokens = logits.argsort(dim=-1, descending=True, stable=True)[..., :width]
    return tokens, logits.log_softmax(dim=-1).gather(-1, tokens)


def _rows(state: Carry, indices: Tensor) -> Carry:
    """The rows of every tensor in `state` at `indices`, read row by row."""

    def take(leaf: Tensor) -> Tensor:
        assert isinstance(leaf, Tensor), f"the state of a beam is made of tensors, not of {type(leaf).__name__}"
        return leaf.index_select(0, indices.reshape(-1))

    rows: Carry = tree_map(take, state)
    return rows


def sample(
    step: Callable[[Tensor, Carry], tuple[Tensor, Carry]],
    state: Carry,
    start: Tensor,
    steps: int,
    *,
    sampling: Sampling,
    end: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Tokens [B, steps] drawn one after the other, and how many of each row come before its `end` [B].

    `step` is as for `greedy`. Unlike greedy and beam this is for one network alone, and ends with the longest row.
    """
    generator = torch.Generator().manual_seed(sampling.seed)
    token, ended = start, torch.zeros_like(start, dtype=torch.bool)
    tokens = []
    for _ in range(steps):
        logits, state = step(token, state)
        chances = probabilities(logits.double().cpu(), sampling)
        token = torch.multinomial(chances, 1, generator=generator)[:, 0].to(start.device)
        if end is not None:
            token = token.masked_fill(ended, end)
            ended = ended | (token == end)
        tokens.append(token)
        if bool(ended.all()):
            break
    rows = torch.stack(tokens, dim=1)
    return rows, (rows != end).sum(dim=1) if end is not None else torch.full_like(start, rows.shape[1])


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """What tokens [B, V] are drawn with: softmax(logits / temperature), cut to the likeliest, and made to sum to 1.

    Of equally likely ones the first stay. The likeliest always stays.
    """
    if sampling.temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(logits)
    chances = (logits / sampling.temperature).softmax(dim=-1)
    order = logits.argsort(dim=-1, descending=True, stable=True)  # by logits, as in `_likeliest`
    ranked = chances.gather(-1, order)
    before = ranked.cumsum(dim=-1) - ranked
    stays = (before < sampling.top_p) | (before == 0)
    if sampling.top_k:
        stays = stays & (torch.arange(ranked.shape[-1], device=ranked.device) < sampling.top_k)
    ranked = ranked * stays
    return torch.zeros_like(chances).scatter(-1, order, ranked / ranked.sum(dim=-1, keepdim=True))
