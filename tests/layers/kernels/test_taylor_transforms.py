"""`form="triton"` under transforms of transforms, with second derivatives, and with nothing to compute."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import grad, jacrev, vmap

from support.triton_kernels import in_interpreter
from tiebreak.errors import TiebreakError
from tiebreak.layers import taylor, taylor_triton
from tiebreak.layers.taylor import attend

pytestmark = [pytest.mark.kernels, in_interpreter]


def make(*lead: int, length: int = 20, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    draws = torch.Generator().manual_seed(0)
    return [torch.randn(*lead, length, width, generator=draws).to(dtype) for width in (8, 8, 16)]


def loss(form: str, *given: Tensor) -> Tensor:
    return attend(given[0], given[1], given[2], causal=True, form=form).sin().sum()


def runs_of_runs(form: str) -> Callable[..., tuple[Tensor, ...]]:
    return vmap(vmap(grad(partial(loss, form), argnums=(0, 1, 2))))


def gradient_over_runs(form: str) -> Callable[..., tuple[Tensor, ...]]:
    return grad(lambda *given: vmap(vmap(partial(loss, form)))(*given).sum(), argnums=(0, 1, 2))


def gradient_between_runs(form: str) -> Callable[..., tuple[Tensor, ...]]:
    return vmap(grad(lambda *given: vmap(partial(loss, form))(*given).sum(), argnums=(0, 1, 2)))


@pytest.mark.parametrize("build", [runs_of_runs, gradient_over_runs, gradient_between_runs])
def test_transforms_of_transforms(build: Callable[[str], Callable[..., tuple[Tensor, ...]]]) -> None:
    """Nested vmap folds too, in place of a loop that torch warns of."""
    given = make(3, 2, 1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = build("triton")(*given)
    for ours, exact in zip(found, build("naive")(*(each.double() for each in given)), strict=True):
        assert float((ours.double() - exact).norm() / exact.norm()) < 1e-5


def penalty(*given: Tensor) -> Tensor:
    """The gradient of the result's sum does not depend on the result, and still on q, k and v."""
    out = attend(given[0], given[1], given[2], causal=True, form="triton")
    first = torch.autograd.grad(out.sum(), given, create_graph=True)
    assert all(each.requires_grad for each in first)
    return sum((each.square().sum() for each in first), out.sum())


def test_a_second_derivative_is_refused_and_never_left_out() -> None:
    given = [each.requires_grad_() for each in make(1, 2)]
    with pytest.raises(TiebreakError, match=r'no second derivative.*form="naive"') as error:
        penalty(*given).backward()  # type: ignore[no-untyped-call]
    assert "\n" not in str(error.value)
    with pytest.raises(TiebreakError, match="no second derivative"):
        jacrev(grad(partial(loss, "triton")))(*(each.detach() for each in given))
    whole = torch.compile(partial(loss, "triton"), fullgraph=True, backend="eager")
    first = torch.autograd.grad(whole(*given), given, create_graph=True)
    with pytest.raises(TiebreakError, match="no second derivative"):
        first[0].square().sum().backward()  # type: ignore[no-untyped-call]


def test_nothing_to_compute() -> None:
    for lead in ((0, 2), (2, 0), (0,)):
        given = [each.requires_grad_() for each in make(*lead)]
        out = attend(*given, causal=True, form="triton")
        assert out.shape == (*lead, 20, 16)
        assert [each.shape for each in torch.autograd.grad(out.sum(), given)] == [each.shape for each in given]
    assert vmap(partial(attend, form="triton", causal=True))(*make(0, 2, 2)).shape == (0, 2, 2, 20, 16)


def test_a_whole_number_as_scale_is_the_same_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton compiles another kernel for a whole number, and kept ones are found by numbers: 2 == 2.0."""
    seen, original = [], taylor_triton._forward

    def forward(*given: Any) -> Any:
        seen.append(given[4][2])
        return original(*given)

    monkeypatch.setattr(taylor_triton, "_forward", forward)
    q, k, v = make(1, 2)
    for scale in (2, 2.0):
        attend(q, k, v, causal=True, scale=scale, form="triton")
    assert [type(each) for each in seen] == [float, float]


def test_auto_does_not_take_what_torch_compile_cannot_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taylor, "chosen", lambda q, k, v, terms: taylor_triton.refusal(q, v, terms) is None)
    given = make(2, 1, 2, length=30)
    each_run = vmap(grad(partial(loss, "auto"), argnums=(0, 1, 2)))
    whole = torch.compile(each_run, fullgraph=True, backend="aot_eager")
    for ours, same in zip(whole(*given), each_run(*given), strict=True):
        assert torch.allclose(ours, same, atol=1e-5)


@pytest.mark.parametrize("hidden", [0, 3])
def test_a_short_memory_is_within_the_bound_in_bfloat16(hidden: int) -> None:
    """Rounded features of 17 keys took gradients 0.9 % away, where the bound is 0.5 %."""
    for d, values in ((8, 16), (32, 64)):
        for seed in range(3):
            draws = torch.Generator().manual_seed(seed)
            shapes = ((2, 2, 17, d), (2, 2, 17, d), (2, 2, 17, values))
            given = [torch.randn(shape, generator=draws).bfloat16().requires_grad_() for shape in shapes]
            above = torch.randn(shapes[2], generator=draws).bfloat16()
            may = torch.rand(2, 1, 17, generator=draws) > 0.4
            may[..., :hidden] = False
            exact = [each.detach().double().requires_grad_() for each in given]
            found, wanted = (
                [out, *torch.autograd.grad(out, each, above.to(out.dtype))]
                for each, form in ((given, "triton"), (exact, "naive"))
                for out in [attend(each[0], each[1], each[2], mask=may, form=form)]
            )
            for ours, right in zip(found, wanted, strict=True):
                assert float((ours.double() - right).detach().norm() / right.detach().norm()) < 5e-3


def test_sums_beyond_the_range_of_float16() -> None:
    """300 values of 60,000 add up to 275 times what float16 can hold."""
    q, k, v = make(1, 2, length=300, dtype=torch.float16)
    big = torch.full_like(v, 60000.0)
    for causal in (True, False):
        out = attend(q, k, big, causal=causal, form="triton")
        assert torch.allclose(out.float(), big.float(), rtol=1e-3)
