"""Programs on a GPU against the same programs traced, and training there against the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from support.small_study import network_of, one_run, split_of, write_data
from tiebreak import catalog
from tiebreak.layers.stacked_conv import StackedConv2d, stack_convolutions
from tiebreak.plan.runs import Run
from tiebreak.train.fused.engine import Fused, Stack
from tiebreak.train.fused.program import Traced
from tiebreak.train.fused.step_inputs import epoch_inputs, mapped
from tiebreak.train.fused.trace import leaves_of, make_outcomes, make_step, trace
from tiebreak.train.loop import Loop
from tiebreak.train.step import State, initial_state

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]  # the compiler has its warnings
TASK = catalog.TASKS["classify"]
SGD = {"kind": "sgd", "fixed": {"lr": 0.05, "dropout": 0.5}}
ADAM = {"kind": "adam", "fixed": {"lr": 0.003, "weight_decay": 0.01}}
rules = pytest.mark.parametrize("rule", [SGD, ADAM], ids=["sgd", "adam"])
compiles = pytest.mark.parametrize("compiled", [False, True], ids=["as traced", "compiled"])


@pytest.fixture(scope="module", name="data")
def _data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


def silent(share: float, steps: int) -> None:
    """Tell nobody."""


def runs_of(data: Path, rule: dict[str, Any], count: int) -> list[Run]:
    run = one_run(data, **rule)
    return [run.model_copy(update={"seed": seed}) for seed in range(count)]


def begun(runs: list[Run], data: Path) -> tuple[list[torch.nn.Module], list[State]]:
    networks = [network_of(run, data, torch.float32).cuda() for run in runs]
    return networks, [initial_state(*each) for each in zip(networks, runs, strict=True)]


def on_gpu(run: Run, data: Path, name: str = "train") -> dict[str, torch.Tensor]:
    return {key: values.cuda() for key, values in split_of(run, data, name, torch.float32).items()}


def apart(one: Any, other: Any) -> float:
    pairs = zip(leaves_of(one), leaves_of(other), strict=True)
    return max(float(torch.linalg.vector_norm(a - b) / (torch.linalg.vector_norm(b) or 1)) for a, b in pairs)


@rules
@compiles
def test_a_captured_step_is_the_traced_one(data: Path, rule: dict[str, Any], compiled: bool) -> None:
    """From the same state at every step. Three steps a replay, and seven steps: two replays and one by one."""
    from tiebreak.train.fused.capture import Captured

    runs = runs_of(data, rule, 3)
    networks, states = begun(runs, data)
    stack_convolutions(networks[0].train())
    assert sum(isinstance(layer, StackedConv2d) for layer in networks[0].modules()) == 2
    inputs = mapped(epoch_inputs(networks[0], runs, states, 56, torch.float32), lambda values: values.cuda())
    row = mapped(inputs, lambda values: values[0])
    state = {**vars(Stack(states)), "total": torch.zeros(3, dtype=torch.float64, device="cuda")}
    decay = {"weight_decay": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8} if rule is ADAM else {}
    shared = {
        "hypers": {name: torch.full((3,), value, device="cuda") for name, value in decay.items()},
        "rates": {"dropout.rate": torch.tensor([0.5, 0.0, 0.7], device="cuda")},
        "split": on_gpu(runs[0], data),
    }
    step = make_step(TASK, networks[0], runs[0].optimiser.kind)
    step(mapped(state, torch.clone), shared, row)
    other = mapped(state, torch.clone)
    before = mapped(state, torch.clone)
    captured = Captured(trace(step, state, shared, row), state, shared, row, steps=3, compiled=compiled)
    assert apart(state, before) == 0.0  # capturing leaves no trace
    assert bool(captured._descents) is (rule is SGD)
    traced = Traced(step, other, shared, row)
    for number in range(7):  # single steps
        assert captured.advance(inputs, number, 1) == 1
        traced.advance(inputs, number, 1)
        torch.cuda.synchronize()
        assert apart(state["params"], other["params"]) <= 1e-5
        assert apart(state["total"], other["total"]) <= 1e-5
        for mine, wanted in zip(leaves_of(state), leaves_of(other), strict=True):
            mine.copy_(wanted)

    for values, start in zip(leaves_of(state), leaves_of(before), strict=True):
        values.copy_(start)
    alone = mapped(before, torch.clone)
    one_by_one = Captured(trace(step, alone, shared, row), alone, shared, row, steps=1, compiled=compiled)
    done, counts = 0, []
    while done < 7:
        counts.append(captured.advance(inputs, done, 7 - done))
        done += counts[-1]
    for number in range(7):
        one_by_one.advance(inputs, number, 1)
    assert counts == [3, 3, 1]
    assert apart(state, alone) == 0.0  # however many steps a replay has


def test_a_call_returns_outcomes(data: Path) -> None:
    from tiebreak.train.fused.capture import Captured

    runs = runs_of(data, SGD, 2)
    networks, states = begun(runs, data)
    stack = Stack(states)
    stack.params["out.bias"][1, 0] += 1
    shared = {"params": stack.params, "buffers": stack.buffers}
    split = on_gpu(runs[0], data)
    function = make_outcomes(TASK, networks[0].eval())
    first, second = ({name: values[at : at + 40] for name, values in split.items()} for at in (0, 40))
    captured = Captured(trace(function, {}, shared, first), {}, shared, first, steps=1, compiled=False)
    traced = Traced(function, {}, shared, first)
    for batch in (first, second, first):
        found, wanted = captured.call(batch), traced.call(batch)
        assert found.keys() == wanted.keys()
        assert apart(found, wanted) <= 1e-5


@rules
@compiles
@pytest.mark.parametrize("design", ["cnn-pool", "cnn-strided", "mlp"])
def test_runs_on_a_gpu_are_the_loops_there(data: Path, rule: dict[str, Any], compiled: bool, design: str) -> None:
    """Single steps from the same state. The seeds are such that no unit near 0 is decided by rounding."""
    arms = [{"name": name, "design": design} for name in ("one", "two")]
    runs = runs_of(data, {**rule, "arms": arms, "comparisons": [{"a": "one", "b": "two"}], "epochs": 8}, 2)
    networks, states = begun(runs, data)
    looped, wanted = begun(runs, data)
    trainer = Fused(TASK, networks[0], runs, states, compiled=compiled)
    loops = [Loop(TASK, *each) for each in zip(looped, runs, wanted, strict=True)]
    split = {name: values[:8].clone() for name, values in on_gpu(runs[0], data).items()}
    assert trainer.provenance()["compiled"] == ("yes" if compiled else "no")
    for _ in range(8):
        losses = trainer.train_epoch(split, silent)
        assert losses == pytest.approx([each.train_epoch(split, silent)[0] for each in loops], rel=1e-4)
        for mine, theirs in zip(states, wanted, strict=True):
            assert apart(mine.params, theirs.params) <= 1e-5
            for name, values in mine.params.items():
                values.copy_(theirs.params[name])
                for slot, memory in mine.slots[name].items():
                    memory.copy_(theirs.slots[name][slot])
    test = on_gpu(runs[0], data, "test")
    for (metrics, _), each in zip(trainer.evaluate(test), loops, strict=True):
        assert metrics == pytest.approx(each.evaluate(test)[0][0], rel=1e-4)
    assert trainer.finite() == [True, True]


@rules
def test_company_does_not_show_on_a_gpu(data: Path, rule: dict[str, Any]) -> None:
    runs = runs_of(data, rule, 5)
    found: dict[int, State] = {}
    split = on_gpu(runs[0], data)
    for order in ((0, 1, 2, 3, 4), (3, 1), (2,), (4, 0, 2)):
        chosen = [runs[number] for number in order]
        networks, states = begun(chosen, data)
        trainer = Fused(TASK, networks[0], chosen, states, compiled=False)
        trainer.train_epoch(split, silent)
        for number, state in zip(order, states, strict=True):
            first = found.setdefault(number, state)
            assert apart(state.params, first.params) == 0.0, (order, number)
