"""`form="triton"` as users call it: with autograd, under vmap, compiled, under autocast."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from support.triton_kernels import in_interpreter
from tiebreak.layers import taylor_triton
from tiebreak.layers.heads import MultiHead
from tiebreak.layers.taylor import attend


def make(device: str) -> tuple[list[Tensor], Tensor]:
    draws = torch.Generator().manual_seed(0)
    found = [torch.randn(3, 2, 2, 40, width, generator=draws).to(device) for width in (8, 8, 16)]
    return found, (torch.rand(2, 1, 40, generator=draws) > 0.3).to(device)


def loss(q: Tensor, k: Tensor, v: Tensor, may: Tensor, *, form: str) -> Tensor:
    return attend(q, k, v, causal=True, mask=may, form=form).sin().sum()


def same(found: tuple[Tensor, ...], wanted: tuple[Tensor, ...]) -> None:
    apart = [float((a.double() - b.double()).norm() / b.double().norm()) for a, b in zip(found, wanted, strict=True)]
    assert max(apart) < 1e-5, apart


def check_transforms(device: str) -> None:
    """Against `naive` in float64: in float32 a GPU may round products to TF32."""
    given, may = make(device)
    alone = [each[0].clone().requires_grad_() for each in given]
    exact = [each.detach().double().requires_grad_() for each in alone]
    wanted = torch.autograd.grad(loss(exact[0], exact[1], exact[2], may, form="naive"), exact)
    same(torch.autograd.grad(loss(alone[0], alone[1], alone[2], may, form="triton"), alone), wanted)
    whole = torch.compile(partial(loss, form="triton"), fullgraph=True, backend="aot_eager")
    same(torch.autograd.grad(whole(*alone, may), alone), wanted)
    runs = [vmap(grad(partial(loss, form=form), argnums=(0, 1, 2)), (0, 1, None, None)) for form in ("triton", "naive")]
    turned = given[0], given[1].transpose(0, 1), given[2][0]
    same(runs[0](*turned, may), runs[1](*(each.double() for each in turned), may))


@pytest.mark.kernels
@in_interpreter
def test_gradients_alone_compiled_and_under_vmap() -> None:
    check_transforms("cpu")


@pytest.mark.kernels
@in_interpreter
def test_compiled_once_for_several_lengths() -> None:
    """One segment has no states, several have."""
    whole = torch.compile(
        partial(attend, causal=True, form="triton"), fullgraph=True, dynamic=True, backend="aot_eager"
    )
    for length in (9, 600):
        given = [torch.randn(1, 1, length, width, requires_grad=True) for width in (8, 8, 16)]
        found, wanted = (form(*given).sin().sum() for form in (whole, partial(attend, causal=True, form="naive")))
        same(torch.autograd.grad(found, given), torch.autograd.grad(wanted, given))


@pytest.mark.kernels
@in_interpreter
def test_few_keys_without_a_causal_mask_are_not_rounded_as_features() -> None:
    given = [torch.randn(2, 2, 3, width, dtype=torch.bfloat16) for width in (8, 8, 16)]
    exact = attend(*(each.double() for each in given), form="naive")
    assert float((attend(*given, form="triton").double() - exact).norm() / exact.norm()) < 3e-3


@pytest.mark.kernels
@in_interpreter
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_few_keys_are_right_in_bfloat16(causal: bool) -> None:
    draws = torch.Generator().manual_seed(0)
    shapes = [(2, 3, 17, width) for width in (32, 32, 64)]
    given = [torch.randn(shape, generator=draws).bfloat16().requires_grad_() for shape in shapes]
    exact = [each.detach().double().requires_grad_() for each in given]
    mask = torch.rand(2, 1, 17, generator=draws) > 0.4
    mask[..., 0] = True
    above = torch.randn(shapes[2], generator=draws).bfloat16()
    found, wanted = (
        [out, *torch.autograd.grad(out, each, above.to(out.dtype))]
        for each, form in ((given, "triton"), (exact, "naive"))
        for out in [attend(each[0], each[1], each[2], mask=mask, causal=causal, form=form)]
    )
    for ours, right in zip(found, wanted, strict=True):
        assert float((ours.double() - right).detach().norm() / right.detach().norm()) < 5e-3


def check_wide_values(device: str, d: int, values: int, length: int) -> None:
    """Values wider than `AT_ONCE` are computed in parts."""
    for causal in (False, True):
        draws = torch.Generator().manual_seed(0)
        shapes = ((2, 3, length, width) for width in (d, d, values))
        given = [torch.randn(shape, generator=draws).to(device, torch.bfloat16).requires_grad_() for shape in shapes]
        exact = [each.detach().double().requires_grad_() for each in given]
        above = torch.randn(2, 3, length, values, generator=draws).to(device, torch.bfloat16)
        found, wanted = (
            [out, *torch.autograd.grad(out, each, above.to(out.dtype))]
            for each, form in ((given, "triton"), (exact, "naive"))
            for out in [attend(each[0], each[1], each[2], causal=causal, form=form)]
        )
        for ours, right in zip(found, wanted, strict=True):
            distance = (ours.double() - right).detach().norm() / right.detach().norm()
            assert float(distance) < 1e-2, (causal, length)


@pytest.mark.kernels
@in_interpreter
def test_wide_values_are_computed_in_parts() -> None:
    check_wide_values("cpu", 8, 80, 70)


@pytest.mark.gpu
def test_wide_values_are_computed_in_parts_on_a_gpu() -> None:
    """In a process of its own: the kernels of D = 32 crashed once, and a CUDA error ends everything after it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.kernels
@in_interpreter
def test_the_op_keeps_the_rules_of_ops() -> None:
    given, may = make("cpu")
    arguments = (*(each[0].requires_grad_() for each in given), may.expand(2, 2, 40), [3.0, 1.0, 0.3])
    torch.library.opcheck(torch.ops.tiebreak.taylor_attend.default, arguments)


@pytest.mark.gpu
def test_auto_takes_the_kernels_from_a_length_on(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [torch.randn(2, 300, width, device="cuda", dtype=torch.bfloat16) for width in (16, 16, 64)]
    plain, ours = (attend(*given, causal=True, form=form) for form in ("chunked", "triton"))
    for length, wanted in ((300, ours), (301, plain)):
        monkeypatch.setattr(taylor_triton, "AUTO_LENGTH", length)
        assert torch.equal(attend(*given, causal=True), wanted)


@pytest.mark.gpu
def test_transforms_and_mixed_precision_on_a_gpu() -> None:
    check_transforms("cuda")
    layer = MultiHead(32, 2, kind="taylor").cuda()
    x = torch.randn(2, 50, 32, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        q, (k, v) = layer._split(layer.query(x)), layer.project_memory(x)
        out = attend(q, k, v, causal=True, form="triton")
    assert out.dtype == torch.float32  # as softmax under autocast
    wanted = attend(q.double(), k.double(), v.double(), causal=True, form="naive")
    same((out.detach(),), (wanted.detach(),))
    out.float().sum().backward()  # type: ignore[no-untyped-call]
    assert layer.key.weight.grad is not None


if __name__ == "__main__":
    for length in (70, 1000, 4097):  # 64 keys or more: fewer are computed without the kernels
        check_wide_values("cuda", 16, 128, length)
        check_wide_values("cuda", 32, 128, length)
