from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from tiebreak.train.fused.trace import Trace, leaves_of, trace

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
Function = Callable[[Mapping[str, Tensor], Mapping[str, Tensor], Mapping[str, Tensor]], Any]


def _both(function: Function) -> tuple[Trace, Trace]:
    """The function as it is, and merged; their results must be equal, and what they leave in the state too."""
    traces, found = [], []
    for merge in (False, True):
        state, shared, row = {"sum": torch.zeros(3, 4)}, {"w": X.mT.contiguous()}, {"x": X}
        traces.append(trace(function, state, shared, row, merge=merge))
        found.append((traces[-1](leaves_of(state, shared, row)), state["sum"]))
    for plain, merged in zip(*(leaves_of(each) for each in found), strict=True):
        assert torch.equal(plain, merged)
    return traces[0], traces[1]


def test_what_is_computed_again_is_computed_once() -> None:
    def function(state: Any, shared: Any, row: Any) -> list[Tensor]:
        return [(row["x"] @ shared["w"]).relu() + step for step in range(4)]

    plain, merged = _both(function)
    assert (plain.operations, merged.operations) == (12, 6)


def test_a_view_and_one_of_several_results_are_merged_too() -> None:
    def function(state: Any, shared: Any, row: Any) -> list[Tensor]:
        return [row["x"].max(dim=1).values + step + shared["w"].mT.to(torch.bfloat16)[0, 0] for step in (1.0, 2.0)]

    plain, merged = _both(function)
    assert merged.operations < plain.operations - 3


def test_numbers_of_another_type_are_not_the_same_argument() -> None:
    def function(state: Any, shared: Any, row: Any) -> list[Tensor]:
        whole = (row["x"] > 0).to(torch.int64)
        return [whole + 1, whole + 1.0, whole * -0.0, whole * 0.0]

    plain, merged = _both(function)
    assert plain.operations == merged.operations


def test_a_change_in_place_is_seen() -> None:
    def function(state: Any, shared: Any, row: Any) -> list[Tensor]:
        before = state["sum"] + row["x"]
        state["sum"][1:].add_(row["x"][1:])
        return [before, state["sum"] + row["x"]]

    _both(function)


def test_copies_of_which_one_is_changed_stay_apart() -> None:
    def function(state: Any, shared: Any, row: Any) -> list[Tensor]:
        first, second = row["x"].clone(), row["x"].clone()
        return [first.view(12)[:6].zero_(), first, second, row["x"].exp(), row["x"].exp()]

    plain, merged = _both(function)
    assert plain.operations == merged.operations


def test_random_numbers_are_drawn_each_time() -> None:
    def function(state: Any, shared: Any, row: Any) -> list[Tensor]:
        return [torch.rand_like(row["x"]), torch.rand_like(row["x"])]

    merged = trace(function, {}, {}, {"x": X}, merge=True)
    first, second = merged([X])
    assert not torch.equal(first, second)
