"""The states of segments: their sums, and the features that they are made of."""

from __future__ import annotations

import pytest
import torch

from support.taylor_cases import Case
from support.triton_kernels import in_interpreter


@pytest.mark.kernels
@in_interpreter
@pytest.mark.parametrize("causal", [True, False])
def test_a_slot_holds_the_keys_up_to_its_segment_or_all_of_them(causal: bool) -> None:
    from tiebreak.layers.kernels.taylor_states import states

    case = Case(100, d=8, causal=causal)
    (_, k, v, _), _ = case.inputs("cpu")
    kept, norms = (each[:, 0] for each in states(case.plan(32, 32), k, v))
    assert kept.shape[:2] == (2, 3 if causal else 4)
    for slot in range(3 if causal else 1):
        seen = 32 * (slot + 1) if causal else 100
        constant = 32 + 8 // 2 + 8  # after the quadratic features, half the pairs and the entries
        assert torch.allclose(norms[:, slot, constant], torch.tensor(float(seen)))
        assert torch.allclose(kept[:, slot, constant], v[:, 0, :seen].sum(dim=1), atol=1e-5)
        linear = 8**-0.5 * k[:, 0, :seen].sum(dim=1)
        assert torch.allclose(norms[:, slot, constant - 8 : constant], linear, atol=1e-5)
        square = (k[:, 0, :seen, 2:3] ** 2 * v[:, 0, :seen]).sum(dim=1) / 16
        assert torch.allclose(kept[:, slot, 2], square, atol=1e-4)
        # x[a] x[a + t]: the pair (7, 1) is at distance 2 around the circle
        pair = (k[:, 0, :seen, 7:8] * k[:, 0, :seen, 1:2] * v[:, 0, :seen]).sum(dim=1) / 8
        assert torch.allclose(kept[:, slot, 2 * 8 + 7], pair, atol=1e-4)
