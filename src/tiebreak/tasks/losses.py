"""The loss that every family shares: the negative log likelihood of the target, with label smoothing.

    nll = -log p_y,   p = softmax(logits)
    smoothed by s:  (1 - s) nll + s (1 / V) sum_v -log p_v

logits [..., V], targets [...] whole numbers y below V; s in [0, 1), one number or None for no smoothing; result [...].
Unlike the label smoothing of `F.cross_entropy`, s may be a tensor: each run of a cohort has its own.
Source of label smoothing: Szegedy et al., "Rethinking the Inception architecture" (2016).

Two forms compute it, and differ in the last bits; a task keeps the form that it was measured with.
`smoothed_nll` makes -log p of all V. `smoothed_cross_entropy` never does: that pays where V is a vocabulary of words.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def smoothed_nll(logits: Tensor, targets: Tensor, smoothing: Tensor | float | None) -> Tensor:
    """The loss of each target, by way of -log p of all V classes."""
    minus_log_p = -F.log_softmax(widened(logits), dim=-1)
    nll = minus_log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    if smoothing is None:
        return nll
    return (1 - smoothing) * nll + smoothing * minus_log_p.mean(dim=-1)


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: Tensor | float | None) -> Tensor:
    """The loss of each target, by torch's kernel; the mean of -log p is logsumexp(logits) - mean(logits)."""
    rows = widened(logits).flatten(0, -2)
    nll = F.cross_entropy(rows, targets.flatten(), reduction="none")
    if smoothing is not None:
        nll = (1 - smoothing) * nll + smoothing * (rows.logsumexp(dim=-1) - rows.mean(dim=-1))
    return nll.view(targets.shape)


def smoothed_nll_naive(logits: Tensor, targets: Tensor, smoothing: Tensor | float | None) -> Tensor:
    """The formula as it stands, one target and one class at a time: the reference of both forms."""
    share = 0.0 if smoothing is None else smoothing
    losses = []
    for row, target in zip(logits.flatten(0, -2), targets.flatten().tolist(), strict=True):
        total = sum((value.exp() for value in row), row.new_zeros(()))
        minus_logs = [-(value.exp() / total).log() for value in row]
        losses.append((1 - share) * minus_logs[target] + share * sum(minus_logs, row.new_zeros(())) / len(minus_logs))
    return torch.stack(losses).view(targets.shape)


def masked_mean(losses: Tensor, real: Tensor, weights: Tensor) -> Tensor:
    """The mean of losses [B, T] over the places where `real` [B, T] is 1, rows weighted by `weights` [B]."""
    return weighted(weights, (losses * real).sum(dim=1)) / weighted(weights, real.sum(dim=1))


def weighted(weights: Tensor, losses: Tensor) -> Tensor:
    """The sum of weights [B] times losses [B], in the type of the losses: a user's network may give float64."""
    return torch.dot(weights.to(losses.dtype), losses)


def widened(logits: Tensor) -> Tensor:
    """In float32, if a user's network gave them in 16 bits."""
    return logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
