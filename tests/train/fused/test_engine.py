"""The trainer for many runs; that it computes what the loop does is in tests/contract/test_fused_equals_loop.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from support.small_study import network_of, one_run, one_thread, split_of, write_data
from tiebreak import catalog
from tiebreak.layers.batchnorm import swap_batchnorm
from tiebreak.layers.dropout import dropouts
from tiebreak.layers.lstm import Lstm
from tiebreak.layers.stacked_conv import StackedConv2d
from tiebreak.plan.runs import Run
from tiebreak.train import checkpoint
from tiebreak.train.fused import engine
from tiebreak.train.fused.engine import Fused, Stack
from tiebreak.train.fused.program import make_program
from tiebreak.train.loop import Loop
from tiebreak.train.step import State, initial_state

TASK = catalog.TASKS["classify"]


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


def silent(share: float, steps: int) -> None:
    """Tell nobody."""


def runs_of(data: Path, count: int, **fixed: Any) -> list[Run]:
    run = one_run(data, kind="sgd", fixed={"lr": 0.05, **fixed})
    return [run.model_copy(update={"seed": seed}) for seed in range(count)]


def begun(runs: list[Run], data: Path) -> tuple[Fused, list[State], nn.Module]:
    networks = [network_of(run, data, torch.float32) for run in runs]
    states = [initial_state(*each) for each in zip(networks, runs, strict=True)]
    return Fused(TASK, networks[0], runs, states), states, networks[0]


def train_split(runs: list[Run], data: Path) -> Any:
    return split_of(runs[0], data, "train", torch.float32)


def programs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs that are made from now on."""
    made = list[Any]()

    def kept(*arguments: Any, **more: Any) -> Any:
        made.append(make_program(*arguments, **more))
        return made[-1]

    monkeypatch.setattr(engine, "make_program", kept)
    return made


def test_two_runs_are_evaluated_without_a_program(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, runs = programs(monkeypatch), runs_of(data, 3)
    trainer, states, network = begun(runs, data)
    before = [values.clone() for state in states for values in state.params.values()]
    trainer.evaluate_two(train_split(runs, data))
    assert not made
    assert network.training
    assert all(map(torch.equal, before, (values for state in states for values in state.params.values())))

    def decides(images: torch.Tensor) -> torch.Tensor:
        return images if next(network.parameters()).sum() > 0 else -images  # numbers of a run

    monkeypatch.setattr(network, "forward", decides)
    with pytest.raises(RuntimeError, match="control flow"):
        trainer.evaluate_two(train_split(runs, data))


def test_states_are_views_of_the_stack_and_move_with_it(data: Path) -> None:
    runs = runs_of(data, 3)
    trainer, states, _ = begun(runs, data)
    before = [{name: values.clone() for name, values in state.params.items()} for state in states]
    kept = [dict(state.params) for state in states]
    losses = trainer.train_epoch(train_split(runs, data), silent)
    assert len(losses) == 3
    for state, start, tensors in zip(states, before, kept, strict=True):
        assert (state.epoch, state.steps) == (1, 12)
        assert all(tensors[name] is values for name, values in state.params.items())
        assert not any(torch.equal(values, start[name]) for name, values in state.params.items())


def test_a_run_without_a_slot_that_others_have_keeps_none(data: Path, tmp_path: Path) -> None:
    runs = [*runs_of(data, 1), *runs_of(data, 2, momentum=0.9)[1:]]
    trainer, states, _ = begun(runs, data)
    trainer.train_epoch(train_split(runs, data), silent)
    assert all(slots == {} for slots in states[0].slots.values())
    assert all(slots["velocity"].any() for slots in states[1].slots.values())
    for run, state in zip(runs, states, strict=True):  # and its checkpoint is that of a loop
        record = checkpoint.save(tmp_path, run, state)
        other = initial_state(network_of(run, data, torch.float32), run)
        checkpoint.restore(tmp_path, record, other)
        assert other.slots.keys() == state.slots.keys()


def test_a_stack_of_states_fills_missing_tensors_with_zeros() -> None:
    one = State(params={"w": torch.ones(2)}, buffers={}, slots={"w": {}}, rates={})
    two = State(params={"w": torch.zeros(2)}, buffers={}, slots={"w": {"velocity": torch.ones(2)}}, rates={})
    stack = Stack([one, two])
    assert torch.equal(stack.slots["w"]["velocity"], torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
    assert one.slots["w"] == {}
    two.slots["w"]["velocity"].fill_(7.0)
    two.params["w"].fill_(3.0)
    assert torch.equal(stack.slots["w"]["velocity"][1], torch.full((2,), 7.0))
    assert torch.equal(stack.params["w"], torch.tensor([[1.0, 1.0], [3.0, 3.0]]))


def test_a_lone_run_is_padded_and_nobody_hears_of_it(data: Path) -> None:
    runs = runs_of(data, 1)
    trainer, states, _ = begun(runs, data)
    split = train_split(runs, data)
    assert len(trainer.train_epoch(split, silent)) == len(trainer.evaluate(split)) == len(trainer.finite()) == 1
    assert (states[0].epoch, states[0].steps) == (1, 12)


def test_runs_with_a_number_that_is_no_number_are_found(data: Path) -> None:
    trainer, states, _ = begun(runs_of(data, 3), data)
    assert trainer.finite() == [True, True, True]
    states[1].params["out.bias"][0] = torch.nan
    assert trainer.finite() == [True, False, True]
    states[2].params["conv1.weight"][0, 0, 0, 0] = torch.inf
    assert trainer.finite() == [True, False, False]


@pytest.mark.parametrize("size", [96, 97, 40, 33, 7, 1])
def test_evaluation_in_parts_is_evaluation_at_once(data: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    runs = runs_of(data, 2)
    trainer, _, _ = begun(runs, data)
    split = train_split(runs, data)
    whole = trainer.evaluate(split)
    monkeypatch.setattr(engine, "EVALUATED", size)
    for (metrics, outcomes), (wanted, expected) in zip(trainer.evaluate(split), whole, strict=True):
        assert metrics == pytest.approx(wanted, rel=1e-6)
        for name, values in outcomes.items():
            assert values.shape == (96,)
            assert values.dtype == np.float32
            np.testing.assert_allclose(values, expected[name], rtol=1e-5, atol=1e-6)


def test_programs_are_made_once_and_their_seconds_told_once(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = programs(monkeypatch)
    runs = runs_of(data, 2)
    trainer, _, _ = begun(runs, data)
    split = train_split(runs, data)
    assert trainer.setup_seconds() == 0.0
    for _ in range(2):
        trainer.train_epoch(split, silent)
        trainer.evaluate(split)
    assert len(made) == 2
    assert trainer.setup_seconds() > 0
    assert trainer.setup_seconds() == 0.0
    trainer.evaluate({name: values[:9] for name, values in split.items()})
    assert len(made) == 3


def test_one_program_evaluates_all_splits_that_are_not_small(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = programs(monkeypatch)
    monkeypatch.setattr(engine, "EVALUATED", 20)
    runs = runs_of(data, 2)
    trainer, _, _ = begun(runs, data)
    split = train_split(runs, data)
    for size in (96, 41, 20):
        (_, outcomes), _ = trainer.evaluate({name: values[:size] for name, values in split.items()})
        assert all(len(values) == size for values in outcomes.values())
    assert len(made) == 1
    trainer.evaluate({name: values[:19] for name, values in split.items()})
    assert len(made) == 2


def test_progress_is_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "TICK_SECONDS", -1.0)
    runs, told = runs_of(data, 2), list[tuple[float, int]]()
    trainer, _, _ = begun(runs, data)
    trainer.train_epoch(train_split(runs, data), lambda share, steps: told.append((share, steps)))
    assert told == [(step / 12, step) for step in range(1, 13)]


def test_on_a_cpu_convolutions_stay_and_there_is_nothing_to_say(data: Path) -> None:
    trainer, _, network = begun(runs_of(data, 2), data)
    assert not any(isinstance(layer, StackedConv2d) for layer in network.modules())
    assert trainer.provenance() == {}


def test_recurrent_layers_take_their_plain_form(data: Path) -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = Lstm(28, 4)

        def forward(self, images: Tensor) -> Tensor:
            outputs: Tensor = self.lstm(images[:, 0])[0]
            return outputs[:, -1, :2]

    runs, networks = runs_of(data, 2), [Own(), Own()]
    states = [initial_state(*each) for each in zip(networks, runs, strict=True)]
    assert not networks[0].lstm.plain
    trainer = Fused(TASK, networks[0], runs, states)
    assert networks[0].lstm.plain
    assert all(loss > 0 for loss in trainer.train_epoch(train_split(runs, data), silent))


def test_rates_are_each_runs_own(data: Path) -> None:
    runs = [runs_of(data, 1, dropout=0.0)[0], runs_of(data, 1)[0], runs_of(data, 1, dropout=0.25)[0]]
    trainer, states, network = begun(runs, data)
    assert torch.equal(trainer._rates["dropout.rate"], torch.tensor([0.0, 0.7, 0.25]))
    assert [float(state.rates["dropout.rate"]) for state in states] == pytest.approx([0.0, 0.7, 0.25])
    assert len(dropouts(network)) == 1


@pytest.mark.parametrize(
    ("kind", "fixed"),
    [
        ("adam", {"weight_decay": 0.1}),
        ("adamw", {"weight_decay": 0.1, "clip_norm": 0.5}),
        ("sgd", {}),
        ("sgd", {"momentum": 0.9, "weight_decay": 0.1}),
        ("sgd-nesterov", {"momentum": 0.9, "ema": 0.5}),
        ("lion", {}),
    ],
)
def test_a_run_alone_updates_all_parameters_at_once_as_the_loop_one_by_one(
    data: Path, kind: str, fixed: dict[str, float]
) -> None:
    run = one_run(data, kind=kind, fixed={"lr": 0.01, **fixed})
    networks = [network_of(run, data, torch.float32) for _ in range(2)]
    states = [initial_state(network, run) for network in networks]
    split = train_split([run], data)
    loop = Loop(TASK, networks[0], run, states[0])
    alone = Fused(TASK, networks[1], [run], states[1:], alone=True)
    for _ in range(2):
        assert alone.train_epoch(split, silent) == pytest.approx(loop.train_epoch(split, silent), rel=1e-4)
    found, wanted = states[1].tensors(), states[0].tensors()
    assert max(float((found[name] - wanted[name]).norm() / (wanted[name].norm() + 1e-6)) for name in wanted) < 1e-3


def test_a_run_alone_with_batch_normalisation_is_the_loop_also_in_a_padded_batch(data: Path) -> None:
    class Normed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.out = nn.BatchNorm2d(1), nn.Linear(28 * 28, 3)

        def forward(self, images: Tensor) -> Tensor:
            logits: Tensor = self.out(self.norm(images).flatten(1))
            return logits

    run = one_run(data, kind="sgd", fixed={"lr": 0.05})
    whole = train_split([run], data)
    examples = 2 * run.batch + 1
    split = {name: values[:examples] for name, values in whole.items()}
    networks, states = [], []
    for _ in range(2):
        torch.manual_seed(0)
        network = Normed()
        swap_batchnorm(network)
        networks.append(network)
        states.append(initial_state(network, run))
    loop = Loop(TASK, networks[0], run, states[0])
    alone = Fused(TASK, networks[1], [run], states[1:], alone=True)
    for _ in range(2):
        assert alone.train_epoch(split, silent) == pytest.approx(loop.train_epoch(split, silent), rel=1e-5)
    for name, values in states[0].tensors().items():
        torch.testing.assert_close(states[1].tensors()[name], values, rtol=1e-4, atol=1e-5)
    assert int(states[1].buffers["norm.num_batches_tracked"]) == 6
