"""Kernels that are compiled before they are launched. Needs a GPU: compiling asks Triton which one."""

from __future__ import annotations

import pytest
import torch

from tiebreak.train.fused.trace import trace

pytest.importorskip("triton", reason="triton is not installed: it comes with CUDA")
from tiebreak.layers.kernels import product
from tiebreak.layers.kernels.compile_ahead import compile_ahead


@pytest.mark.gpu
def test_the_kernel_is_there_and_nothing_was_computed() -> None:
    a, b = (torch.ones(2, 48, 48, device="cuda") for _ in range(2))
    traced = trace(lambda state, shared, row: product.product(row["a"], row["b"]), {}, {}, {"a": a, "b": b})
    cache = product._product.device_caches[torch.cuda.current_device()][0]
    before = len(cache)
    compile_ahead(traced.graph)
    assert len(cache) == before + 1
    assert torch.equal(product.product(a, b), 48 * torch.ones_like(a))
    assert len(cache) == before + 1
