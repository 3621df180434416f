"""Launches that go past Triton's search: whatever changes, the kernel compiled for it is the one that runs."""

from __future__ import annotations

import pytest
import torch

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

from support.triton_kernels import in_interpreter  # noqa: E402
from tiebreak.layers.kernels.taylor_launch import Constants, launch  # noqa: E402


@triton.jit  # type: ignore[untyped-decorator]
def _scaled(x, out, size, scale, E: tl.constexpr, SQUARE: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * E + tl.arange(0, E)
    values = tl.load(x + at, mask=at < size, other=0.0)
    if SQUARE:
        values *= values
    tl.store(out + at, values * scale, mask=at < size)


def check(device: str) -> None:
    given = torch.arange(64.0, device=device) % 8  # exact in float16, squared too
    for square in (False, True):
        how = Constants({"E": 16, "SQUARE": square}, {"num_warps": 1})
        for start, size, scale in ((0, 64, 2.0), (0, 64, 2.0), (1, 63, 2.0), (1, 1, 2.0), (0, 32, 3.0), (0, 64, 2.0)):
            x = given[start : start + size]
            for dtype in (torch.float32, torch.float16):
                out = torch.empty(size, device=device, dtype=dtype)
                launch(_scaled, (triton.cdiv(size, 16), 1), (x, out), (size, scale), how)
                assert torch.equal(out.float(), (x * x if square else x) * scale)


@pytest.mark.kernels
@in_interpreter
def test_launches() -> None:
    check("cpu")


@pytest.mark.gpu
def test_launches_on_a_gpu() -> None:
    check("cuda")
