"""Kernels that are compiled before they are launched. Needs a GPU: compiling asks Triton which one."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="triton is not installed: it comes with CUDA")
from tiebreak.layers.kernels import product
from tiebreak.layers.kernels.compile_ahead import only_compiled


@pytest.mark.gpu
def test_the_kernel_is_there_and_nothing_was_computed() -> None:
    a, b, c = (torch.ones(2, 48, 48, device="cuda") for _ in range(3))
    cache = product._product.device_caches[torch.cuda.current_device()][0]
    before = len(cache)
    with only_compiled(lambda: product._launch(a, b, c, None)):
        pass
    assert len(cache) == before + 1
    assert torch.equal(c, torch.ones_like(c))
    product._launch(a, b, c, None)
    assert torch.equal(c, 48 * torch.ones_like(c))
    assert len(cache) == before + 1
