"""Inputs for the kernels of Taylor attention, and how far they are from the formula in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tiebreak.layers.taylor_forms import How, naive

BOUND = {torch.float32: 1e-5, torch.bfloat16: 5e-3, torch.float16: 3e-3}  # norm-wise; TF32 cuts off


@dataclass(frozen=True)
class Case:
    """One call with two sequences; in memory heads lie between length and width, as layers have it."""

    length: int
    d: int = 16
    v: int = 16
    causal: bool = True
    dtype: torch.dtype = torch.float32
    masked: bool = False
    terms: int = 3
    keys: int | None = None
    heads: int = 1
    grow: float = 1.0  # of q and k

    def inputs(self, device: str) -> tuple[list[Tensor], Tensor | None]:
        """q, k, v and the gradient of the result; and the mask, whose first keys of all are hidden."""
        draws, keys = torch.Generator().manual_seed(0), self.keys or self.length
        shapes = ((self.length, self.d), (keys, self.d), (keys, self.v), (self.length, self.v))
        found = [torch.randn(2, n, self.heads, width, generator=draws).transpose(1, 2) for n, width in shapes]
        found[:2] = [each * self.grow for each in found[:2]]
        may = torch.rand(2, 1, keys, generator=draws) > 0.4
        may[0, :, :3] = False
        given = [each.to(device, self.dtype) for each in found]
        return given, may.expand(2, self.heads, keys).to(device) if self.masked else None

    def plan(self, segment: int | None, rows: int | None) -> Any:
        """How the kernels cut it; small blocks where `rows` says so, copied by descriptors where that can be."""
        from tiebreak.layers.kernels.taylor_plan import TUNING, Plan, Tuning

        tuning = (
            None
            if rows is None
            else {name: Tuning(rows, others=16, features=32, stages=2, copied=True) for name in TUNING}
        )
        return Plan(2, self.heads, self.d, self.v, self.terms, self.causal, self.d**-0.5, self.dtype, tuning, segment)


def distances(case: Case, device: str, segment: int | None = None, rows: int | None = None) -> list[float]:
    """Of the result and the gradients of q, k and v, relative to their norms."""
    from tiebreak.layers.kernels.taylor_backward import backward
    from tiebreak.layers.kernels.taylor_forward import forward

    (q, k, v, above), may = case.inputs(device)
    plan = case.plan(segment, rows)
    result = forward(plan, q, k, v, may)
    found = [result[0], *backward(plan, q, k, v, may, result, above)]
    exact = [each.double().requires_grad_() for each in (q, k, v)]
    out = naive(exact[0], exact[1], exact[2], may, How(case.terms, case.d**-0.5, case.causal, 64, torch.float64))
    wanted = [out.detach(), *torch.autograd.grad(out, exact, above.double())]
    return [float((ours.double() - each).norm() / each.norm()) for ours, each in zip(found, wanted, strict=True)]
