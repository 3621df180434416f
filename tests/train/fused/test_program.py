from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tiebreak.train.fused.program import Traced, make_program


def add(state: Any, shared: Any, row: Any) -> Tensor:
    state["total"].addcmul_(row["x"], shared["factor"])
    total: Tensor = state["total"] + row["more"]["y"]
    return total


def begun() -> tuple[Any, Any, Any]:
    inputs = {"x": torch.arange(12.0).view(4, 3), "more": {"y": torch.arange(4.0)}}
    return {"total": torch.zeros(3)}, {"factor": torch.tensor([1.0, 10.0, 100.0])}, inputs


def row(inputs: Any, number: int) -> Any:
    return {"x": inputs["x"][number], "more": {"y": inputs["more"]["y"][number]}}


def test_on_a_cpu_a_program_is_traced_and_goes_step_by_step() -> None:
    state, shared, inputs = begun()
    program = make_program(add, state, shared, row(inputs, 0), steps=10, compiled=True)
    assert isinstance(program, Traced)
    assert not state["total"].any()
    done = 0
    while done < 4:
        done += program.advance(inputs, done, 4 - done)
    assert done == 4
    assert torch.equal(state["total"], inputs["x"].sum(dim=0) * shared["factor"])


def test_a_call_returns_what_the_function_returns() -> None:
    state, shared, inputs = begun()
    program = make_program(add, state, shared, row(inputs, 0))
    found = program.call(row(inputs, 2))
    assert torch.equal(found, state["total"] + 2.0)
    assert torch.equal(state["total"], inputs["x"][2] * shared["factor"])


def test_a_program_sees_what_becomes_of_its_tensors() -> None:
    state, shared, inputs = begun()
    program = make_program(add, state, shared, row(inputs, 0))
    state["total"].fill_(5.0)
    shared["factor"].zero_()
    program.advance(inputs, 1, 1)
    assert torch.equal(state["total"], torch.full((3,), 5.0))


def test_nothing_is_kept_for_a_gradient() -> None:
    state, shared, inputs = begun()
    shared["factor"].requires_grad_()
    program = make_program(add, state, shared, row(inputs, 0))
    assert not program.call(row(inputs, 1)).requires_grad
