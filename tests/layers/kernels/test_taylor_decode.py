"""One token after the other, in place, against `step`, which makes a new state each time."""

from __future__ import annotations

import pytest
import torch

from support.triton_kernels import in_interpreter
from tiebreak.layers import taylor


def check_decode(device: str, heads: int, d: int, v: int, dtype: torch.dtype) -> None:
    """`step_in_place` calls `decode` where there are kernels."""
    from tiebreak.layers.kernels.taylor_decode import decode

    assert callable(decode)
    torch.manual_seed(0)
    state = taylor.init_state(d, v, lead=(2, heads), device=device)
    twin, where = state.clone(), state.data_ptr()
    for _ in range(3):
        q, k = (torch.randn(2, heads, d, device=device).to(dtype) for _ in range(2))
        values, may = torch.randn(2, heads, v, device=device).to(dtype), torch.rand(2, 1, device=device) > 0.3
        wanted, twin = taylor.step(twin, q, k, values, mask=may)
        found = taylor.step_in_place(state, q, k, values, mask=may)
        assert torch.allclose(found, wanted, atol=3e-5, rtol=1e-5 if dtype == torch.float32 else 1e-2)
        assert torch.allclose(state, twin, atol=1e-5)
    assert state.data_ptr() == where


@pytest.mark.kernels
@in_interpreter
@pytest.mark.parametrize(("d", "v"), [(8, 16), (5, 7)])
def test_decode_in_place_is_step(d: int, v: int) -> None:
    check_decode("cpu", 2, d, v, torch.float32)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_decode_in_place_is_step_on_a_gpu(dtype: torch.dtype) -> None:
    check_decode("cuda", 133, 16, 64, dtype)
