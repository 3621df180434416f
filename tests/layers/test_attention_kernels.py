"""The kernels, as far as `test_long_attention` does not reach."""

from __future__ import annotations

import pytest
import torch

from tiebreak.layers import attention_kernels
from tiebreak.layers.attention_kernels import How, as_written, backward, forward


@pytest.mark.gpu
@pytest.mark.parametrize("kernel", ["flash", "efficient"])
def test_more_rows_than_a_launch_takes_go_in_parts(
    kernel: attention_kernels.Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    q, above = torch.randn(2, 5, 2, 9, 8, device="cuda", dtype=torch.bfloat16)
    bias = torch.randn(5, 1, 1, 9, device="cuda", dtype=torch.bfloat16) if kernel == "efficient" else None
    found = []
    for most in (65535, 2):
        monkeypatch.setattr(attention_kernels, "MOST_ROWS", most)
        out, *kept = forward(q, q, q, bias, How(kernel, False, 0.3))
        gradients = backward((q, q, q, bias), out, (kept[0], kept[1], kept[2]), above, How(kernel, False, 0.3))
        found.append((out, *gradients))
    apart = [float((one - other).norm() / one.norm()) for one, other in zip(*found, strict=True)]
    assert max(apart) < 2e-3, apart  # a last bit of bfloat16, 4e-3, of a few numbers


def test_a_result_in_parts_lies_in_memory_as_a_whole_one() -> None:
    whole = torch.randn(5, 9, 2, 8).transpose(1, 2)  # as `efficient` writes it
    parts = torch.cat([whole[:2], whole[2:]])
    assert parts.stride() != whole.stride()
    assert as_written(parts).stride() == whole.stride()
    assert torch.equal(as_written(parts), whole)
    assert as_written(whole).data_ptr() == whole.data_ptr()


def test_a_gradient_that_is_one_number_everywhere() -> None:
    q = torch.randn(1, 2, 9, 4)
    how = How("cpu", True, 0.5)
    out, *kept = forward(q, q, q, None, how)
    one = torch.ones(()).expand_as(out)
    for spread, whole in zip(
        *(backward((q, q, q, None), out, (kept[0], kept[1], kept[2]), each, how) for each in (one, one.contiguous())),
        strict=True,
    ):
        assert torch.equal(spread, whole)
