"""States of many runs as one."""

from __future__ import annotations

import torch
from torch import Tensor

from tiebreak.train.fused.stack import Stack
from tiebreak.train.step import State


def state(number: float, *, averaged: bool = False, momentum: bool = True) -> State:
    params = {"weight": torch.full((3,), number)}
    return State(
        params=params,
        buffers={"seen": torch.full((2,), 10 * number)},
        slots={"weight": {"momentum": torch.full((3,), 100 * number)} if momentum else {}},
        rates={},
        averages={"weight": torch.full((3,), number + 0.5)} if averaged else {},
    )


def rows(values: Tensor) -> list[float]:
    return values[:, 0].tolist()


def test_other_states_take_the_place_of_the_first_ones() -> None:
    stack = Stack([state(1.0, averaged=True), state(2.0)])
    held = [stack.params["weight"], stack.buffers["seen"], stack.slots["weight"]["momentum"], stack.averages["weight"]]
    stack.params["weight"].add_(7.0)
    others = [state(3.0, averaged=True), state(4.0, momentum=False)]
    stack.load(others)
    assert [rows(values) for values in held] == [[3.0, 4.0], [30.0, 40.0], [300.0, 0.0], [3.5, 4.0]]
    held[0].add_(1.0)  # the states see it: they are views
    assert [each.params["weight"][0].item() for each in others] == [4.0, 5.0]
    assert others[1].averages == {}
