"""What `forward` does with inputs that rounding or padding could turn into NaN."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from support.taylor_cases import Case
from support.triton_kernels import in_interpreter


def finite(case: Case, given: list[Tensor], may: Tensor | None, segment: int | None, rows: int | None) -> list[Tensor]:
    from tiebreak.layers.kernels.taylor_backward import backward
    from tiebreak.layers.kernels.taylor_forward import forward

    q, k, v, above = given
    plan = case.plan(segment, rows)
    result = forward(plan, q, k, v, may)
    found = [result[0], *backward(plan, q, k, v, may, result, above)]
    assert found[0].isfinite().all()
    # A gradient that float16 cannot hold is infinite, as gradients are whose scale must come down; it is never NaN.
    assert not any(
        bool(each.isnan().any() if case.dtype == torch.float16 else ~each.isfinite().all()) for each in found
    )
    return found


def check_adversarial(device: str, length: int, segment: int | None, rows: int | None) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        case = Case(length, d=8, dtype=dtype, grow=200.0)
        given, _ = case.inputs(device)
        finite(case, given, None, segment, rows)
        zeros = [torch.zeros_like(each) for each in given[:2]]
        out = finite(case, [*zeros, *given[2:]], None, segment, rows)[0]
        assert torch.allclose(out[:, :, 5].double(), given[2][:, :, :6].double().mean(dim=2), atol=1e-2)
        constant = given[1][:, :, :1].expand_as(given[1]).contiguous()
        finite(case, [given[0], constant, *given[2:]], None, segment, rows)


def check_padding(device: str, segment: int | None, rows: int | None) -> None:
    for causal in (True, False):
        case = Case(40, d=8, masked=True, causal=causal)
        given, may = case.inputs(device)
        assert may is not None
        clean = finite(case, given, may, segment, rows)
        hidden = ~may[..., None].expand_as(given[1])
        given[1] = given[1].masked_fill(hidden, torch.nan)
        given[2] = given[2].masked_fill(~may[..., None].expand_as(given[2]), torch.nan)
        dirty = finite(case, given, may, segment, rows)
        assert all(torch.equal(*each) for each in zip(clean, dirty, strict=True))
        nothing = torch.zeros_like(may)
        assert not finite(case, given, nothing, segment, rows)[0].any()


@pytest.mark.kernels
@in_interpreter
def test_adversarial_inputs_stay_finite() -> None:
    check_adversarial("cpu", 40, 32, 32)


@pytest.mark.kernels
@in_interpreter
def test_what_is_masked_may_be_anything() -> None:
    check_padding("cpu", 32, 32)


@pytest.mark.gpu
def test_adversarial_inputs_stay_finite_on_a_gpu() -> None:
    check_adversarial("cuda", 1000, None, None)
    check_padding("cuda", None, None)


@pytest.mark.gpu
def test_131072_tokens_in_float16_do_not_overflow() -> None:
    case = Case(131072, v=64, dtype=torch.float16, grow=4.0)
    given, _ = case.inputs("cuda")
    given[2] = given[2].abs() + 100.0
    out = finite(case, given, None, None, None)[0]
    assert float(out.min()) > 99.0
