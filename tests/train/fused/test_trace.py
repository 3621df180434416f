from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from support.small_study import network_of, one_run, one_thread, split_of, write_data
from tiebreak import catalog
from tiebreak.plan.runs import Run
from tiebreak.train.fused.stack import Stack
from tiebreak.train.fused.step_inputs import epoch_inputs, mapped
from tiebreak.train.fused.trace import gather, leaves_of, make_outcomes, make_step, trace
from tiebreak.train.step import initial_state

TASK = catalog.TASKS["classify"]


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Iterator[Run]:
    with one_thread():
        yield one_run(write_data(tmp_path / "data"), kind="sgd", fixed={"lr": 0.05, "momentum": 0.9})


def test_examples_are_gathered_by_run() -> None:
    values = torch.arange(24).view(4, 3, 2)
    indices = torch.tensor([[3, 0], [1, 1], [2, 3]])
    found = gather(values, indices)
    assert found.shape == (3, 2, 3, 2)
    assert torch.equal(found, values[indices])


def test_a_trace_is_the_function_for_other_numbers_of_the_same_shapes() -> None:
    calls = []

    def function(state: Any, shared: Any, row: Any) -> dict[str, Tensor]:
        calls.append(1)
        state["total"].add_(row["x"] * shared["factor"])
        return {"twice": 2 * row["x"], "none": {}, "again": row["x"] + state["total"]}

    state = {"total": torch.zeros(3)}
    shared, row = {"factor": torch.tensor(2.0)}, {"x": torch.ones(3)}
    traced = trace(function, state, shared, row)
    assert len(calls) == 1
    assert not state["total"].any()  # nothing was computed
    assert "make_fx" not in traced.graph.code
    other = {"x": torch.tensor([1.0, 2.0, 3.0])}
    for count in (1, 2):
        found = traced(leaves_of(state, shared, other))
        assert torch.equal(state["total"], count * 2 * other["x"])
        assert torch.equal(found["twice"], 2 * other["x"])
        assert found["none"] == {}
        assert torch.equal(found["again"], other["x"] + state["total"])
    assert len(calls) == 1


def test_what_nobody_needs_is_not_computed() -> None:
    def function(state: Any, shared: Any, row: Tensor) -> Tensor:
        row.exp().sum()
        return row + 1

    traced = trace(function, {}, {}, torch.ones(2))
    assert "exp" not in traced.graph.code
    assert torch.equal(traced([torch.ones(2)]), torch.full((2,), 2.0))


def problem(run: Run, folder: Path, count: int = 3) -> tuple[nn.Module, Any, Any, Any]:
    runs = [run.model_copy(update={"seed": seed}) for seed in range(count)]
    networks = [network_of(each, folder) for each in runs]
    states = [initial_state(*each) for each in zip(networks, runs, strict=True)]
    inputs = epoch_inputs(networks[0], runs, states, 96, torch.float64)
    state = {**vars(Stack(states)), "total": torch.zeros(count, dtype=torch.float64)}
    hypers = {"momentum": torch.full((count,), 0.9, dtype=torch.float64)}
    rates = {"dropout.rate": torch.full((count,), 0.5, dtype=torch.float64)}
    shared = {"split": split_of(run, folder, "train"), "hypers": hypers, "rates": rates}
    return networks[0], state, shared, inputs


def test_a_traced_step_is_the_step(run: Run, tmp_path: Path) -> None:
    network, state, shared, inputs = problem(run, tmp_path / "data")
    step = make_step(TASK, network.train(), "sgd")
    other = mapped(state, torch.clone)
    step(mapped(state, torch.clone), shared, mapped(inputs, lambda values: values[0]))  # fills what layers cache
    traced = trace(step, state, shared, mapped(inputs, lambda values: values[0]))
    assert not state["total"].any()
    for number in range(3):
        row = mapped(inputs, operator.itemgetter(number))
        step(other, shared, row)
        with torch.no_grad():
            traced(leaves_of(state, shared, row))
    for mine, wanted in zip(leaves_of(state), leaves_of(other), strict=True):
        assert torch.linalg.vector_norm(mine - wanted) <= 1e-13 * torch.linalg.vector_norm(wanted)
    assert state["total"].all()
    assert all(velocity.any() for slots in state["slots"].values() for velocity in slots.values())


def test_outcomes_change_nothing(run: Run, tmp_path: Path) -> None:
    network, state, shared, _ = problem(run, tmp_path / "data", count=2)
    state["params"]["out.bias"][1, 0] += 1
    before = mapped(state, torch.clone)
    given = {"params": state["params"], "buffers": state["buffers"]}
    batch = {name: values[:5] for name, values in shared["split"].items()}
    traced = trace(make_outcomes(TASK, network.eval()), {}, given, batch)
    found = traced(leaves_of({}, given, batch))
    assert {"accuracy", "loss", "prediction"} <= set(found)
    assert all(values.shape == (2, 5) for values in found.values())
    assert all(torch.equal(*pair) for pair in zip(leaves_of(state), leaves_of(before), strict=True))
    assert not torch.equal(found["loss"][0], found["loss"][1])


def test_control_by_values_cannot_be_traced(run: Run) -> None:
    class Decides(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(784, 2)

        def forward(self, images: Tensor) -> Tensor:
            logits: Tensor = self.out(images.flatten(1))
            return logits if logits.sum() > 0 else -logits

    network = Decides()
    states = [initial_state(network, run)] * 2
    given = {"params": Stack(states).params, "buffers": {}}
    batch = {"images": torch.zeros(3, 1, 28, 28), "labels": torch.zeros(3, dtype=torch.long)}
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        trace(make_outcomes(TASK, network), {}, given, batch)
