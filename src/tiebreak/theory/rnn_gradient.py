"""The plain RNN language model and its cross-entropy gradient, derived by hand.

    e_t = L[x_t],   h_t = σ(h_{t-1} H + e_t I + b1),   ŷ_t = softmax(h_t U + b2),   E = -1/N sum_t log ŷ_t[y_t]

x_t words and y_t the words to predict, t = 1 to T, [B, T] and N = B T of them; h_0 [B, D] the state carried in.
L |V| x d embedding, H D x D, I d x D, U D x |V|, b1 D, b2 |V|: |V| d + D (D + d + |V| + 1) + |V| parameters. Vectors
are rows.

Let o_t = (ŷ_t - onehot(y_t)) / N be the gradient at the logits, a_t that at the argument of σ, with σ' = σ (1 - σ) and
a_{T+1} = 0, as a window ends there. From t = T down to 1:

    a_t = (o_t U^T + a_{t+1} H^T) * h_t * (1 - h_t)

    dU = sum_t h_t^T o_t        dH = sum_t h_{t-1}^T a_t      dL[w] = sum_{t: x_t = w} a_t I^T
    db2 = sum_t o_t             dI = sum_t e_t^T a_t          db1 = sum_t a_t            dh_0 = a_1 H^T

each also summed over the batch. Only H carries a_{t+1} back, times σ' ≤ 1/4 at each step: over k steps a gradient is
multiplied by (‖H‖ / 4)^k at most, and vanishes unless ‖H‖ > 4. Training drops dh_0: the state is carried between
windows, its gradient is not.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tiebreak.errors import TiebreakError


class Weights(NamedTuple):
    """The model's parameters, or a gradient with respect to each of them."""

    embedding: Tensor  # L [|V|, d]
    recurrent: Tensor  # H [D, D]
    inputs: Tensor  # I [d, D]
    outputs: Tensor  # U [D, |V|]
    hidden_bias: Tensor  # b1 [D]
    output_bias: Tensor  # b2 [|V|]


def parameters(words: int, embedding: int, hidden: int) -> int:
    """How many numbers the model holds.

    >>> parameters(10_000, 256, 512), parameters(10_000, 2048, 4096)
    (8083728, 86619920)
    """
    return words * embedding + hidden * (hidden + embedding + words + 1) + words


def forward(weights: Weights, words: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """One window, words [B, T] from the state h_0 [B, D]: states h_0 to h_T [B, T + 1, D] and logits [B, T, |V|]."""
    _check(weights, words, start)
    drives = weights.embedding[words] @ weights.inputs + weights.hidden_bias
    states = [start]
    for step in range(words.shape[1]):
        states.append(torch.sigmoid(states[-1] @ weights.recurrent + drives[:, step]))
    every = torch.stack(states, dim=1)
    return every, every[:, 1:] @ weights.outputs + weights.output_bias


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """E, the mean over all words of the window; its exponential is the perplexity."""
    if targets.shape != logits.shape[:-1] or targets.dtype != torch.int64:
        raise TiebreakError(
            f"targets must be int64 {list(logits.shape[:-1])}, not {targets.dtype} {list(targets.shape)}"
        )
    _check_words(targets, logits.shape[-1])
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


def gradient(weights: Weights, words: Tensor, targets: Tensor, start: Tensor) -> tuple[Tensor, Weights, Tensor]:
    """E, its gradient with respect to the weights, and that with respect to h_0, by the formulas above."""
    with torch.no_grad():
        states, logits = forward(weights, words, start)
        loss = cross_entropy(logits, targets)
        at_logits = (logits.softmax(dim=-1) - F.one_hot(targets, logits.shape[-1])) / targets.numel()  # o [B, T, |V|]
        from_above = at_logits @ weights.outputs.T
        inner = torch.empty_like(states[:, 1:])  # a [B, T, D]
        later = torch.zeros_like(start)  # a_{t+1} H^T
        for step in reversed(range(words.shape[1])):
            h = states[:, step + 1]
            inner[:, step] = (from_above[:, step] + later) * h * (1 - h)
            later = inner[:, step] @ weights.recurrent.T
        # Sums over batch and time are products of [N, ...] matrices.
        a, o, e = inner.flatten(0, 1), at_logits.flatten(0, 1), weights.embedding[words].flatten(0, 1)
        before, after = states[:, :-1].flatten(0, 1), states[:, 1:].flatten(0, 1)
        own = Weights(
            embedding=torch.zeros_like(weights.embedding).index_add(0, words.flatten(), a @ weights.inputs.T),
            recurrent=before.T @ a,
            inputs=e.T @ a,
            outputs=after.T @ o,
            hidden_bias=a.sum(dim=0),
            output_bias=o.sum(dim=0),
        )
    return loss, own, later


def _check(weights: Weights, words: Tensor, start: Tensor) -> None:
    (vocabulary, width), hidden = weights.embedding.shape, len(weights.hidden_bias)
    wanted = ((vocabulary, width), (hidden, hidden), (width, hidden), (hidden, vocabulary), (hidden,), (vocabulary,))
    for name, each, shape in zip(Weights._fields, weights, wanted, strict=True):
        if each.shape != shape:
            raise TiebreakError(f"the weight {name!r} must be {list(shape)}, not {list(each.shape)}")
    if words.dtype != torch.int64 or words.ndim != 2 or 0 in words.shape:
        raise TiebreakError(f"words must be int64 [batch, time], at least one, not {words.dtype} {list(words.shape)}")
    _check_words(words, vocabulary)
    if start.shape != (len(words), hidden) or not start.is_floating_point():
        raise TiebreakError(
            f"the state must be floating-point {[len(words), hidden]}, not {start.dtype} {list(start.shape)}"
        )


def _check_words(words: Tensor, vocabulary: int) -> None:
    wrong = words[(words < 0) | (words >= vocabulary)]
    if wrong.numel():
        raise TiebreakError(f"word {int(wrong[0])} is not in the vocabulary of {vocabulary}")
