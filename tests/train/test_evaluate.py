from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from support.small_study import network_of, one_run, one_thread, split_of, write_data
from tiebreak import catalog
from tiebreak.study.registry import TASKS
from tiebreak.train import evaluate as module
from tiebreak.train.evaluate import evaluate

TASK = catalog.TASKS["classify"]


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


def test_accuracy_and_loss_are_the_means_over_the_images(data: Path) -> None:
    run = one_run(data)
    network, split = network_of(run, data), split_of(run, data, "train")
    metrics, outcomes = evaluate(TASK, network, split)
    logits = network.eval()(split["images"]).detach()
    right = (logits.argmax(dim=1) == split["labels"]).numpy()
    losses = F.cross_entropy(logits, split["labels"], reduction="none").numpy()
    assert {"accuracy", "loss"} <= set(metrics) == set(TASKS["classify"].metrics)
    assert metrics["accuracy"] == right.mean()
    assert metrics["loss"] == pytest.approx(losses.mean(), rel=1e-6)
    np.testing.assert_array_equal(outcomes["accuracy"], right)
    np.testing.assert_allclose(outcomes["loss"], losses, rtol=1e-6)
    assert all(values.dtype == np.float32 and values.shape == (96,) for values in outcomes.values())


@pytest.mark.parametrize("batch", [1, 7, 95, 96, 97])
def test_the_batch_size_does_not_matter(data: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    run = one_run(data)
    network, split = network_of(run, data), split_of(run, data, "train")
    whole = evaluate(TASK, network, split)
    monkeypatch.setattr(module, "BATCH", batch)
    parts = evaluate(TASK, network, split)
    assert parts[0] == pytest.approx(whole[0], rel=1e-6)
    for name, values in whole[1].items():
        np.testing.assert_allclose(parts[1][name], values, rtol=1e-6)


@pytest.mark.parametrize(("numbers", "size"), [(1 << 23, 96), (10 * 785, 10), (785 * 7 - 1, 6), (1, 1)])
def test_large_examples_are_evaluated_a_few_at_a_time(
    data: Path, monkeypatch: pytest.MonkeyPatch, numbers: int, size: int
) -> None:
    run = one_run(data)
    network, split = network_of(run, data), split_of(run, data, "train")
    assert sum(values[0].numel() for values in split.values()) == 28 * 28 + 1
    whole = evaluate(TASK, network, split)
    monkeypatch.setattr(module, "NUMBERS", numbers)
    assert module.at_once(TASK, split, 96) == size
    assert evaluate(TASK, network, split)[0] == pytest.approx(whole[0], rel=1e-6)


def test_the_network_is_left_as_it_was_and_dropout_is_off(data: Path) -> None:
    run = one_run(data)
    network, split = network_of(run, data).train(), split_of(run, data, "val")
    before = {name: value.clone() for name, value in network.state_dict().items()}
    generator = torch.get_rng_state()
    first, second = evaluate(TASK, network, split), evaluate(TASK, network, split)
    assert first[0] == second[0]
    assert not network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())
    assert torch.equal(generator, torch.get_rng_state())
