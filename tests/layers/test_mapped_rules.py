"""Operations without a rule of torch's are mapped over runs at once, with the numbers of torch's kernels."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from tiebreak.layers.mapped_rules import add_mapped_rules

CASES: dict[str, Callable[[Tensor], Tensor]] = {
    "addcdiv_": lambda x: (x * 1).addcdiv_(x, x.abs() + 1),
    "clamp_": lambda x: (x * 1).clamp_(min=-0.5),
    "index_copy_": lambda x: (x * 1).index_copy_(0, torch.tensor([2, 0]), x[:2].exp()),
    "masked_fill_": lambda x: (x * 1).masked_fill_(x > 0, 2.0),
    "max_unpool2d": lambda x: F.max_unpool2d(x[None, :2, :3], torch.tensor([[[0, 3, 4], [12, 9, 23]]]), [2, 2]),
    "nanquantile": lambda x: x.nanquantile(0.4, dim=1),
    "quantile": lambda x: x.quantile(torch.tensor([0.2, 0.7], dtype=x.dtype), dim=0),
    "stft": lambda x: torch.stft(x, 4, 2, window=torch.hann_window(4, dtype=x.dtype), return_complex=True).abs(),
    "take": lambda x: x.take(torch.tensor([3, 5])),
    "tril_": lambda x: (x * 1).tril_(),
    "weight_norm": lambda x: torch._weight_norm(x, x[:, :1], 0),
    "weight_norm_of_all": lambda x: torch._weight_norm(x, x[0, 0], -1),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_gives_the_numbers_of_torch_and_no_warning(name: str) -> None:
    add_mapped_rules()
    runs = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found = vmap(CASES[name])(runs)
    assert torch.allclose(found, torch.stack([CASES[name](run) for run in runs]), rtol=1e-12, atol=1e-14)
