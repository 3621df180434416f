"""One token after the other, in place, against `step`, which makes a new state each time."""

from __future__ import annotations

import pytest
import torch
from torch.func import vmap

from support.triton_kernels import in_interpreter
from tiebreak.errors import TiebreakError
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


@pytest.mark.kernels
@in_interpreter
def test_a_token_that_does_not_fit_its_state_is_refused_and_nothing_is_written() -> None:
    """The kernel takes one query, key and value for each state: with fewer states it wrote past their end."""
    whole = torch.zeros(9, 45, 17)
    state = whole[:3]
    q, k, v = torch.randn(2, 3, 8), torch.randn(2, 3, 8), torch.randn(2, 3, 16)
    with pytest.raises(TiebreakError, match=r"leading axes \(3,\) cannot take tokens of \(2, 3\)"):
        taylor.step_in_place(state, q, k, v)
    with pytest.raises(TiebreakError, match="the same leading axes"):
        taylor.step_in_place(state, q[0], k[0, :2], v[0])
    assert not whole.any()
    wanted, after = taylor.step(state, q[0], k[0, :1], v[0])
    assert torch.allclose(taylor.step_in_place(state, q[0], k[0, :1], v[0]), wanted, atol=1e-6)
    assert torch.allclose(state, after, atol=1e-6)
    assert not whole[3:].any()


@pytest.mark.kernels
@in_interpreter
def test_in_place_where_gradients_or_vmap_watch() -> None:
    start = taylor.init_state(8, 16, lead=(4, 3)).requires_grad_()
    q, k, v = torch.randn(4, 3, 8), torch.randn(4, 3, 8), torch.randn(4, 3, 16)
    state = start + 1.0
    wanted = torch.autograd.grad(taylor.step(state, q, k, v)[0].sum(), start)[0]
    found = torch.autograd.grad(taylor.step_in_place(start + 1.0, q, k, v).sum(), start)[0]
    assert torch.allclose(found, wanted)
    out, state = taylor.step(start.detach(), q, k, v)
    twin = start.detach().clone()
    assert torch.allclose(vmap(taylor.step_in_place)(twin, q, k, v), out, atol=1e-6)
    assert torch.allclose(twin, state, atol=1e-6)
