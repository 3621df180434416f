"""How sequences are cut."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from support.triton_kernels import in_interpreter


@pytest.mark.kernels
@in_interpreter
def test_states_and_normalisers_take_fifteen_per_cent_at_most() -> None:
    from tiebreak.layers.kernels.taylor_plan import Plan, operand

    for d, v, dtype in product((8, 16, 32), (16, 64, 128), (torch.bfloat16, torch.float16, torch.float32)):
        plan = Plan(1, 1, d, v, 3, True, 1.0, dtype)
        extra = plan.features * (v * operand(dtype).itemsize + 4) / plan.segment + 4
        assert extra <= 0.15 * 2 * (d + v) * dtype.itemsize, (d, v, dtype)
        assert plan.segment % 128 == 0
    assert Plan(8, 16, 16, 64, 3, True, 0.25, torch.bfloat16).segment == 512
    assert Plan(8, 16, 16, 64, 3, True, 0.25, torch.bfloat16).features == 160
