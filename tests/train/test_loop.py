from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn, optim

from support.small_study import network_of, one_run, one_thread, split_of, write_data
from tiebreak import catalog
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.train import loop
from tiebreak.train.loop import Loop
from tiebreak.train.step import State, initial_state

TASK = catalog.TASKS["classify"]


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


def silent(share: float, steps: int) -> None:
    assert 0 < share <= 1
    assert steps > 0


def trained(run: Run, data: Path, epochs: int = 1) -> tuple[State, list[float]]:
    network, split = network_of(run, data), split_of(run, data, "train")
    state = initial_state(network, run)
    return state, [Loop(TASK, network, run, state).train_epoch(split, silent)[0] for _ in range(epochs)]


def plain_epoch(network: nn.Module, optimiser: optim.Optimizer, run: Run, data: Path, epoch: int) -> list[float]:
    """The loop that everybody writes, on the same order of the data."""
    split = split_of(run, data, "train")
    order = np.random.Generator(np.random.Philox(stream(run.seed, "order", epoch))).permutation(len(split["labels"]))
    losses = []
    network.train()
    for chosen in torch.split(torch.from_numpy(order), run.batch):
        optimiser.zero_grad()
        loss = F.cross_entropy(
            network(split["images"][chosen]),
            split["labels"][chosen],
            label_smoothing=run.hypers["label_smoothing"] or 0,
        )
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("batch", [8, 7], ids=["whole batches", "a partial last batch"])
@pytest.mark.parametrize("kind", ["sgd", "adam", "adamw"])
@pytest.mark.parametrize("design", ["cnn-pool", "cnn-strided"])
def test_two_epochs_are_those_of_a_plain_loop(data: Path, design: str, kind: str, batch: int) -> None:
    fixed = {"lr": 0.002, "dropout": 0.0, "weight_decay": 0.01, "label_smoothing": 0.1, "momentum": 0.5}
    arms = [{"name": name, "design": design} for name in ("still", "moved")]
    run = one_run(data, kind=kind, batch=batch, fixed=fixed, arms=arms)
    network, split = network_of(run, data), split_of(run, data, "train")
    state = initial_state(network, run)
    plain = copy.deepcopy(network)
    optimiser: optim.Optimizer
    if kind == "sgd":
        optimiser = optim.SGD(plain.parameters(), lr=0.002, momentum=0.5, weight_decay=0.01)
    else:
        optimiser = {"adam": optim.Adam, "adamw": optim.AdamW}[kind](plain.parameters(), lr=0.002, weight_decay=0.01)
    for epoch in range(2):
        (loss,) = Loop(TASK, network, run, state).train_epoch(split, silent)
        losses = plain_epoch(plain, optimiser, run, data, epoch)
        assert loss == pytest.approx(np.mean(losses), rel=1e-12)
    assert (state.epoch, state.steps) == (2, 2 * -(-96 // batch))
    for ours, theirs in zip(network.parameters(), plain.parameters(), strict=True):
        assert torch.linalg.vector_norm(ours - theirs) <= 1e-12 * torch.linalg.vector_norm(theirs)


def test_the_schedule_is_followed(data: Path) -> None:
    fixed = {"lr": 0.1, "dropout": 0.0}
    schedule = {"kind": "linear", "warmup_epochs": 1, "floor": 0.0}
    run = one_run(data, epochs=4, fixed=fixed, optimiser={"kind": "sgd", "schedule": schedule})
    network, split = network_of(run, data), split_of(run, data, "train")
    state = initial_state(network, run)
    before = {name: value.clone() for name, value in state.params.items()}
    Loop(TASK, network, run, state).train_epoch(split, silent)  # the warm-up begins at a factor of 0
    assert all(torch.equal(before[name], value) for name, value in state.params.items())
    plain = copy.deepcopy(network)
    for epoch, factor in enumerate((1, 2 / 3, 1 / 3), start=1):
        Loop(TASK, network, run, state).train_epoch(split, silent)
        plain_epoch(plain, optim.SGD(plain.parameters(), lr=0.1 * factor), run, data, epoch)
    for ours, theirs in zip(network.parameters(), plain.parameters(), strict=True):
        assert torch.linalg.vector_norm(ours - theirs) <= 1e-12 * torch.linalg.vector_norm(theirs)


def test_progress_is_told_as_a_rising_share(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = one_run(data)
    network, split = network_of(run, data), split_of(run, data, "train")
    state, told = initial_state(network, run), list[tuple[float, int]]()
    monkeypatch.setattr(loop, "TICK_SECONDS", 1e9)
    Loop(TASK, network, run, state).train_epoch(split, lambda share, steps: told.append((share, steps)))
    assert told == []
    monkeypatch.setattr(loop, "TICK_SECONDS", -1.0)
    Loop(TASK, network, run, state).train_epoch(split, lambda share, steps: told.append((share, steps)))
    assert [share for share, _ in told] == pytest.approx([step / 12 for step in range(1, 13)])
    assert [steps for _, steps in told] == list(range(1, 13))


def test_equal_seeds_are_bit_equal_and_different_seeds_are_not(data: Path) -> None:
    run = one_run(data, fixed={"lr": 0.003, "dropout": 0.7})
    one, two = trained(run, data), trained(run, data)
    assert one[1] == two[1]
    assert all(torch.equal(value, two[0].params[name]) for name, value in one[0].params.items())
    other, losses = trained(run.model_copy(update={"seed": 1}), data)
    assert losses != one[1]
    assert not torch.equal(other.params["out.weight"], one[0].params["out.weight"])


def test_dropout_masks_differ_from_step_to_step_and_from_seed_to_seed(data: Path) -> None:
    run = one_run(data, batch=96, fixed={"lr": 0.0, "dropout": 0.7})  # nothing is learnt and all images are in a step
    losses = [loss for seed in range(2) for loss in trained(run.model_copy(update={"seed": seed}), data, epochs=2)[1]]
    assert len(set(losses)) == 4
    run = one_run(data, batch=96, fixed={"lr": 0.0, "dropout": 0.0})
    losses = [loss for seed in range(2) for loss in trained(run.model_copy(update={"seed": seed}), data, epochs=2)[1]]
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-12)


def test_no_global_generator_is_touched_by_building_and_training(data: Path) -> None:
    run = one_run(data)
    before = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    trained(run, data)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert before[2] == repr(np.random.get_state())  # noqa: NPY002


def test_the_state_of_a_global_generator_changes_nothing(data: Path) -> None:
    run = one_run(data)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        one = trained(run, data)[1]
        torch.manual_seed(2)
        assert trained(run, data)[1] == one
