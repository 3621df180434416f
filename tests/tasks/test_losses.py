from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import grad, vmap

from tiebreak.tasks.losses import masked_mean, smoothed_cross_entropy, smoothed_nll, smoothed_nll_naive

Loss = Callable[[Tensor, Tensor, Tensor | float | None], Tensor]
both_forms = pytest.mark.parametrize("form", [smoothed_nll, smoothed_cross_entropy])


def examples(*lead: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits [*lead, classes], targets [*lead], and a gradient from above [*lead]."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(*lead, classes, generator=generator, dtype=torch.float64)
    targets = torch.randint(0, classes, lead, generator=generator)
    return logits.requires_grad_(), targets, torch.randn(lead, generator=generator, dtype=torch.float64)


@both_forms
@pytest.mark.parametrize("smoothing", [None, 0.0, 0.1, torch.tensor(0.37, dtype=torch.float64)])
@pytest.mark.parametrize("sizes", [(1, 1), (5, 3), (2, 3, 7), (2, 1, 3, 5)])
def test_values_and_gradients_are_the_formulas(form: Loss, smoothing: Tensor | float | None, sizes: list[int]) -> None:
    *lead, classes = sizes
    logits, targets, above = examples(*lead, classes=classes)
    found, expected = form(logits, targets, smoothing), smoothed_nll_naive(logits, targets, smoothing)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    slopes = [torch.autograd.grad(each, logits, above)[0] for each in (found, expected)]
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-11, atol=1e-12)


@both_forms
def test_it_is_torchs_label_smoothing(form: Loss) -> None:
    logits, targets, _ = examples(6, classes=5)
    expected = F.cross_entropy(logits, targets, label_smoothing=0.2, reduction="none")
    torch.testing.assert_close(form(logits, targets, 0.2), expected, rtol=1e-12, atol=1e-12)


@both_forms
def test_runs_that_are_mapped_have_their_own_smoothing(form: Loss) -> None:
    logits, targets, _ = examples(4, classes=3)
    shares = torch.tensor([0.0, 0.1, 0.5], dtype=torch.float64)

    def total(logits: Tensor, share: Tensor) -> Tensor:
        return form(logits, targets, share).sum()

    together = vmap(grad(total), in_dims=(None, 0))(logits.detach(), shares)
    for row, share in enumerate(shares):
        torch.testing.assert_close(together[row], grad(total)(logits.detach(), share), rtol=1e-12, atol=1e-12)


def test_large_logits_stay_finite() -> None:
    logits, targets = torch.tensor([[1e4, -1e4, 0.0]]), torch.tensor([1])
    for form in (smoothed_nll, smoothed_cross_entropy):
        assert form(logits, targets, 0.1).isfinite().all()


def test_the_masked_mean_counts_real_places_alike_whatever_row_they_are_in() -> None:
    losses = torch.tensor([[1.0, 2.0, 50.0], [4.0, 90.0, 90.0], [70.0, 70.0, 70.0]])
    real = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    weights = torch.tensor([0.5, 0.5, 0.0])  # the last row fills up a batch
    assert float(masked_mean(losses, real, weights)) == pytest.approx((1 + 2 + 4) / 3)
