"""How far Taylor attention and its peers are from their formulas in float64: asked before anything is timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tiebreak.layers import taylor, taylor_triton
from tiebreak.layers.kernels import taylor_decode
from tiebreak.layers.taylor_forms import How, naive


def formula(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal, three terms."""
    return naive(q, k, v, None, How(3, q.shape[-1] ** -0.5, True, 64, torch.float64))


def apart(found: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    """The largest distance, relative to the norm."""
    pairs = zip(found, wanted, strict=True)
    return max(float((a.detach().double() - b.detach()).norm() / b.detach().norm()) for a, b in pairs)


def of_form(form: Callable[..., Tensor], exact: Callable[..., Tensor], given: Sequence[Tensor]) -> float:
    """Of the result and the gradients; `given` are q, k, v and the gradient of the result."""

    def all_of(form: Callable[..., Tensor], dtype: torch.dtype) -> list[Tensor]:
        three = [each.detach().to(dtype).requires_grad_() for each in given[:3]]
        out = form(*three)
        return [out, *torch.autograd.grad(out, three, given[3].to(out.dtype))]

    return apart(all_of(form, given[0].dtype), all_of(exact, torch.float64))


def of_decoding(device: str, d: int = 16, values: int = 64) -> float:
    """Of five tokens in place from `step`: results and the last state."""
    state = taylor.init_state(d, values, lead=(3,), device=device)
    twin, found, wanted = state.double(), [], []
    for _ in range(5):
        q, k, v = (torch.randn(3, width, device=device) for width in (d, d, values))
        table = taylor_triton.indices(d, state.device)
        found.append(taylor_decode.decode(state, (q, k, v), None, d**-0.5, table))
        out, twin = taylor.step(twin, q.double(), k.double(), v.double())
        wanted.append(out)
    return apart([*found, state], [*wanted, twin])
