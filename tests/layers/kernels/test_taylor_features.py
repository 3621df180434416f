"""The packing: every pair of entries once, every entry once, and the 1."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement

import pytest
import torch

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

from support.triton_kernels import in_interpreter  # noqa: E402
from tiebreak.layers.kernels.taylor_features import low, quadratic  # noqa: E402


@triton.jit  # type: ignore[untyped-decorator]
def _show(pairs, others, D: tl.constexpr, W: tl.constexpr, WL: tl.constexpr):  # type: ignore[no-untyped-def]
    first, second, weight = quadratic(0, 2.0, W, D)
    at = tl.arange(0, W)
    tl.store(pairs + at, first.to(tl.float32))
    tl.store(pairs + W + at, second.to(tl.float32))
    tl.store(pairs + 2 * W + at, weight)
    first, second, one_first, one_second, weight = low(2.0, WL, D, 3)
    at = tl.arange(0, WL)
    tl.store(others + at, first.to(tl.float32))
    tl.store(others + WL + at, second.to(tl.float32))
    tl.store(others + 2 * WL + at, one_first)
    tl.store(others + 3 * WL + at, one_second)
    tl.store(others + 4 * WL + at, weight)


@pytest.mark.kernels
@in_interpreter
@pytest.mark.parametrize("d", [8, 16, 32])
def test_every_multiset_of_at_most_two_entries_is_one_feature(d: int) -> None:
    wide = triton.next_power_of_2(d // 2 + d + 1)
    pairs, others = torch.empty(3, d * d // 2), torch.empty(5, wide)
    _show[(1,)](pairs, others, d, d * d // 2, wide)
    found = [(sorted(map(int, each[:2])), float(each[2])) for each in pairs.T]
    found += [(sorted(map(int, each[:2])), float(each[4])) for each in others.T if each[1] >= 0]
    wanted = [(list(pair), 2.0 if pair[0] == pair[1] else 4.0) for pair in combinations_with_replacement(range(d), 2)]
    assert Counter(map(str, found)) == Counter(map(str, wanted))
    rest = [tuple(map(float, each)) for each in others.T if each[1] < 0]
    assert rest[:d] == [(float(index), -1.0, 0.0, 1.0, 2.0) for index in range(d)]
    assert rest[d] == (-1.0, -1.0, 1.0, 1.0, 1.0)
    assert all(each[:1] + each[2:4] == (-1.0, 0.0, 0.0) for each in rest[d + 1 :])
