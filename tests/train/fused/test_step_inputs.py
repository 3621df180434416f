from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from support.small_study import network_of, one_run, one_thread, write_data
from tiebreak.data.batches import epoch_batches
from tiebreak.layers.batchnorm import BatchNorm
from tiebreak.layers.dropout import Dropout, step_keys
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.train.fused import step_inputs as module
from tiebreak.train.fused.step_inputs import epoch_inputs, join, mapped
from tiebreak.train.schedule import factors
from tiebreak.train.step import State, initial_state


@pytest.fixture(name="run")
def _run(tmp_path: Path) -> Iterator[Run]:
    with one_thread():
        yield one_run(write_data(tmp_path / "data"), schedule="cosine", epochs=6)


def seeds(run: Run, *numbers: int) -> list[Run]:
    return [run.model_copy(update={"seed": seed}) for seed in numbers]


def states_of(runs: list[Run], network: nn.Module, places: list[tuple[int, int]]) -> list[State]:
    states = []
    for run, (epoch, steps) in zip(runs, places, strict=True):
        state = initial_state(network, run)
        state.epoch, state.steps = epoch, steps
        states.append(state)
    return states


def test_every_run_is_at_its_own_place(run: Run, tmp_path: Path) -> None:
    network = network_of(run, tmp_path / "data")
    runs, places = seeds(run, 3, 4, 3), [(0, 0), (2, 26), (5, 65)]
    found = epoch_inputs(network, runs, states_of(runs, network, places), 97, torch.float64)
    assert found["indices"].shape == found["weights"].shape == (13, 3, 8)
    assert (found["indices"].dtype, found["weights"].dtype) == (torch.int64, torch.float64)
    assert set(found["buffers"]) == {"dropout.key"}
    assert set(found["changing"]) == {"lr", "bias1", "bias2"}
    for row, (own, (epoch, steps)) in enumerate(zip(runs, places, strict=True)):
        batches = epoch_batches(own.seed, epoch, 97, 8)
        assert torch.equal(found["indices"][:, row], torch.from_numpy(batches.indices))
        assert torch.equal(found["weights"][:, row], torch.from_numpy(batches.weights))
        keys = step_keys(stream(own.seed, "dropout"), steps, 13, 1)
        assert torch.equal(found["buffers"]["dropout.key"][:, row], keys[:, 0])
        course = torch.from_numpy(factors(own.optimiser.schedule, epoch, 13, 6))
        assert torch.equal(found["changing"]["lr"][:, row], course * 0.003)
        count = torch.arange(steps + 1, steps + 14, dtype=torch.float64)
        torch.testing.assert_close(found["changing"]["bias1"][:, row], 1 - 0.9**count, rtol=1e-14, atol=0)
    assert not found["weights"][-1, :, 1:].any()  # the last batch is one example and seven of weight 0


def test_float32_is_rounded_as_in_a_loop(run: Run, tmp_path: Path) -> None:
    network = network_of(run, tmp_path / "data", torch.float32)
    runs = seeds(run, 0, 1)
    found = epoch_inputs(network, runs, states_of(runs, network, [(0, 0)] * 2), 20, torch.float32)
    assert found["weights"].dtype == found["changing"]["lr"].dtype == torch.float32
    batches = epoch_batches(1, 0, 20, 8)
    assert torch.equal(found["weights"][:, 1], torch.from_numpy(batches.weights).float())


def test_the_order_is_computed_once_for_each_seed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(seed: int, epoch: int, examples: int, batch: int, *, shuffled: bool) -> object:
        asked.append(seed)
        return epoch_batches(seed, epoch, examples, batch, shuffled=shuffled)

    monkeypatch.setattr(module, "epoch_batches", counted)
    network = network_of(run, tmp_path / "data")
    runs = seeds(run, 5, 6, 5, 6, 5)
    epoch_inputs(network, runs, states_of(runs, network, [(0, 0)] * 5), 16, torch.float64)
    assert sorted(asked) == [5, 6]


def test_layers_are_found_at_every_depth_and_a_network_that_is_a_layer_too(run: Run) -> None:
    plain = run.model_copy(update={"optimiser": run.optimiser.model_copy(update={"kind": "sgd"})})
    nested = nn.Sequential(nn.Linear(2, 2), nn.Sequential(Dropout(0.1), BatchNorm(nn.BatchNorm1d(2))), Dropout(0.2))
    state = initial_state(nested, plain)
    found = epoch_inputs(nested, [plain] * 2, [state] * 2, 16, torch.float32)
    assert set(found["buffers"]) == {"1.0.key", "2.key", "1.1.weights"}
    assert set(found["changing"]) == {"lr"}
    assert torch.equal(found["buffers"]["1.1.weights"], found["weights"])
    assert not torch.equal(found["buffers"]["1.0.key"], found["buffers"]["2.key"])
    assert (join("", "key"), join("a.b", "key")) == ("key", "a.b.key")


def test_mapped_keeps_the_structure() -> None:
    one = torch.ones(2)
    assert mapped({"a": one, "b": {}, "c": {"d": one}}, lambda values: values.sum()) == {
        "a": torch.tensor(2.0),
        "b": {},
        "c": {"d": torch.tensor(2.0)},
    }
