"""Results and gradients of the kernels against the formula in float64."""

from __future__ import annotations

import pytest
import torch

from support.machine_code import disassembled, never_written
from support.taylor_cases import BOUND, Case, distances
from support.triton_kernels import in_interpreter

FLOAT, BRAIN, HALF = torch.float32, torch.bfloat16, torch.float16
SMALL = {
    "several segments, masked": Case(75, masked=True),
    "full, other lengths": Case(40, d=8, v=20, causal=False, masked=True, keys=53),
    "bfloat16": Case(70, dtype=BRAIN, v=32),
    "bfloat16, full": Case(33, dtype=BRAIN, causal=False),
    "float16": Case(50, dtype=HALF, masked=True),
    "wide": Case(40, d=32),
    "odd width": Case(40, d=11, v=5, masked=True),
    "two terms": Case(40, d=8, terms=2, grow=0.2),
    "one token": Case(1, d=8, causal=False, keys=3),
    "seventeen": Case(17, d=8, dtype=BRAIN, masked=True),
}
# Every value of every column, and the pairs that take different paths; each compiles six kernels.
KINDS = [
    (16, 64, True, BRAIN, False),
    (16, 64, False, BRAIN, True),
    (8, 16, True, FLOAT, True),
    (16, 64, True, FLOAT, False),
    (16, 128, False, FLOAT, True),
    (32, 64, True, BRAIN, True),
    (32, 128, False, BRAIN, False),
    (32, 16, True, HALF, False),
    (16, 64, True, HALF, True),
    (8, 64, False, HALF, False),
]


@pytest.mark.kernels
@in_interpreter
@pytest.mark.parametrize("name", SMALL)
def test_backward_and_forward_are_the_formula(name: str) -> None:
    """`distances` calls `forward` and `backward`, and compares them with `taylor_forms.naive`."""
    case = SMALL[name]
    assert max(distances(case, "cpu", segment=32, rows=32)) < BOUND[case.dtype]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_backward_and_forward_are_the_formula_on_a_gpu(kind: tuple[int, int, bool, torch.dtype, bool]) -> None:
    """`forward` and `backward`, with the blocks that users get."""
    from tiebreak.layers.kernels import taylor_launch

    taylor_launch._compiled.clear()
    for length in (17, 1000, 4097):
        case = Case(length, *kind)
        assert max(distances(case, "cuda")) < BOUND[case.dtype], length
    for compiled in taylor_launch._compiled.values():
        assert not never_written(disassembled(compiled)), compiled.name
