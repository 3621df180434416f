from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from support.small_study import network_of, one_run, one_thread, split_of, write_data
from tiebreak import catalog
from tiebreak.layers.dropout import Dropout, dropouts
from tiebreak.train.step import hyper_tensors, initial_state, loss_and_gradient

TASK = catalog.TASKS["classify"]


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


def test_hyper_parameters_are_tensors_and_those_that_are_zero_or_open_are_absent(data: Path) -> None:
    run = one_run(data, fixed={"lr": 0.25, "momentum": 0.5, "eps": 0.0})
    hypers = hyper_tensors(run, torch.zeros(1, dtype=torch.float64))
    assert set(hypers) == {"lr", "momentum", "beta1", "beta2"}
    assert all(value.shape == () and value.dtype == torch.float64 for value in hypers.values())
    assert float(hypers["lr"]) == 0.25


def test_a_state_begins_with_the_networks_own_tensors(data: Path) -> None:
    run = one_run(data)
    network = network_of(run, data)
    state = initial_state(network, run)
    assert (state.epoch, state.steps) == (0, 0)
    assert list(state.params) == [name for name, _ in network.named_parameters()]
    for name, parameter in network.named_parameters():
        assert state.params[name].data_ptr() == parameter.data_ptr()
        assert not state.params[name].requires_grad
        assert set(state.slots[name]) == {"mean", "square"}
        assert not any(slot.any() for slot in state.slots[name].values())


@pytest.mark.parametrize(
    ("fixed", "slots"), [({"lr": 0.1}, set()), ({"lr": 0.1, "momentum": 0.9}, {"velocity"})], ids=["plain", "momentum"]
)
def test_sgd_remembers_only_what_it_uses(data: Path, fixed: dict[str, float], slots: set[str]) -> None:
    run = one_run(data, kind="sgd", fixed=fixed)
    state = initial_state(network_of(run, data), run)
    assert all(set(memory) == slots for memory in state.slots.values())


def test_the_runs_dropout_rate_replaces_the_designs(data: Path) -> None:
    for fixed, expected in (({}, 0.7), ({"dropout": 0.0}, 0.0), ({"dropout": 0.25}, 0.25)):
        run = one_run(data, fixed=fixed)
        network = network_of(run, data)
        initial_state(network, run)
        assert [float(layer.rate) for layer in dropouts(network)] == pytest.approx([expected])


def test_buffers_that_belong_to_the_state_are_kept_and_others_are_not(data: Path) -> None:
    run = one_run(data)
    norm = nn.BatchNorm1d(3)
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 3), norm, Dropout(0.5))
    buffers = initial_state(network, run).buffers
    assert set(buffers) == {"2.running_mean", "2.running_var", "2.num_batches_tracked"}
    assert norm.running_mean is not None
    assert buffers["2.running_mean"].data_ptr() == norm.running_mean.data_ptr()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss_and_gradient_are_those_of_cross_entropy(data: Path, smoothing: float) -> None:
    run = one_run(data, fixed={"dropout": 0.0, "label_smoothing": smoothing})
    network, split = network_of(run, data), split_of(run, data, "val")
    initial_state(network, run)
    hypers = hyper_tensors(run, split["images"])
    weights = torch.full((24,), 1 / 24, dtype=torch.float64)
    params = list(network.parameters())
    loss, gradient = loss_and_gradient(TASK, network, params, split, weights, hypers)
    expected = F.cross_entropy(network(split["images"]), split["labels"], label_smoothing=smoothing)
    assert not loss.requires_grad
    assert float(loss) == pytest.approx(expected.item(), rel=1e-14)
    for ours, theirs in zip(gradient, torch.autograd.grad(expected, params), strict=True):
        assert torch.linalg.vector_norm(ours - theirs) <= 1e-13 * torch.linalg.vector_norm(theirs)


def test_a_parameter_that_the_loss_does_not_use_has_gradient_zero() -> None:
    network = nn.Linear(4, 2)
    network.register_parameter("idle", nn.Parameter(torch.ones(3)))
    batch: dict[str, Tensor] = {"images": torch.ones(2, 4), "labels": torch.tensor([0, 1])}
    _, gradient = loss_and_gradient(TASK, network, list(network.parameters()), batch, torch.full((2,), 0.5), {})
    shapes = [tuple(grad.shape) for grad in gradient]
    assert shapes == [tuple(parameter.shape) for parameter in network.parameters()]
    idle = [name for name, _ in network.named_parameters()].index("idle")
    assert not gradient[idle].any()
