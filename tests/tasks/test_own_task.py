from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tiebreak.errors import TiebreakError
from tiebreak.models.own_shape import Tensors
from tiebreak.tasks.interface import TrainedOn
from tiebreak.tasks.own_splits import own_data
from tiebreak.tasks.own_task import OwnTask
from tiebreak.train.precision import callable_in

ROWS = torch.arange(60.0).reshape(20, 3)
DATA = own_data("mine", {"x": ROWS, "word": torch.ones(20, 2, 4, dtype=torch.int32), "y": ROWS[:, 0]})
BATCH = {name: values[:4] for name, values in DATA.splits["train"].items()}


def squared(network: Any, batch: Any) -> Tensor:
    return (network(batch["x"])[:, 0] - batch["y"]).square()  # type: ignore[no-any-return]


def absolute(network: Any, batch: Any) -> dict[str, Tensor]:
    return {"error": (network(batch["x"])[:, 0] - batch["y"]).abs()}


def task(
    loss: Callable[..., Any] = squared, metrics: Callable[..., Any] = absolute, load: Callable[..., Any] = dict
) -> OwnTask:
    return OwnTask("mine.py", load, loss, metrics)


def test_the_shape_is_what_the_loss_calls_the_network_with() -> None:
    shape = task(lambda network, batch: network(batch["x"], batch["word"])).shape(DATA)
    assert shape == Tensors(signature="float32 3, int64 2x4")
    assert shape.sizes == ((3,), (2, 4))
    x, word = shape.inputs(5)
    assert not x.any()
    assert word.all()  # lengths of 0 are refused by packed sequences
    assert (x.shape, x.dtype, word.shape, word.dtype) == ((5, 3), torch.float32, (5, 2, 4), torch.int64)


def test_trial_inputs_of_a_mask_have_both_values() -> None:
    assert Tensors(signature="bool 3, bool ").inputs(2)[0].tolist() == [[True, False, True]] * 2
    assert Tensors(signature="bool 3, bool ").inputs(2)[1].tolist() == [True, True]


def test_an_example_may_be_one_number() -> None:
    shape = task(lambda network, batch: network(batch["y"])).shape(DATA)
    assert shape.sizes == ((),)
    assert shape.inputs(2)[0].shape == (2,)


def catches_all(network: Any, batch: Any) -> Any:
    try:
        return network(batch["x"])
    except Exception:
        return None


def test_a_loss_that_catches_errors_hides_no_call() -> None:
    assert task(catches_all).shape(DATA).sizes == ((3,),)


def penalised(network: Any, batch: Any) -> Tensor:
    penalty = sum(each.square().sum() for each in network.parameters())
    return squared(network, batch) + 0.1 * penalty + network.weight.abs().sum()  # type: ignore[no-any-return]


@pytest.mark.parametrize("precision", [None, "bfloat16"])
def test_a_penalty_of_weights(precision: Any) -> None:
    network, weights = torch.nn.Linear(3, 1), torch.full((4,), 0.25)
    layers = callable_in(torch.nn.ModuleDict({"one": torch.nn.Sequential(network)}), precision)
    assert isinstance(layers, torch.nn.ModuleDict)
    assert list(layers) == ["one"]
    assert len(layers) == 1
    assert isinstance(layers["one"], torch.nn.Sequential)
    assert layers["one"][0].weight is network.weight
    assert [each(BATCH["x"]).shape for each in layers["one"]] == [(4, 1)]
    more = 0.1 * sum(float(each.detach().square().sum()) for each in network.parameters())
    more += float(network.weight.detach().abs().sum())
    own, call = task(penalised), callable_in(network, precision)
    with pytest.raises(TiebreakError, match=r"AttributeError: the network is tried without its 'weight' first"):
        task(lambda net, batch: net.weight.sum() + squared(net, batch)).shape(DATA)
    with torch.no_grad():
        apart = float(own.loss(call, BATCH, weights, {}) - task().loss(call, BATCH, weights, {}))
        assert own.outcomes(call, BATCH)["loss"].shape == (4,)
    assert apart == pytest.approx(more, rel=1e-4)
    assert task(lambda net, batch: 0 * sum(each.sum() for each in net.parameters()) + squared(net, batch)).shape(DATA)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda network, batch: network(x=batch["x"]), "tensors by position"),
        (lambda network, batch: network(batch["x"], 3), "tensors by position"),
        (lambda network, batch: network(), "tensors by position"),
        (lambda network, batch: batch["y"], "without calling the network"),
        (lambda network, batch: batch["z"], r"mine\.py: loss: KeyError: 'z', at test_own_task\.py:\d+"),
    ],
)
def test_a_loss_that_cannot_be_called(loss: Callable[..., Any], message: str) -> None:
    with pytest.raises(TiebreakError, match=message):
        task(loss).shape(DATA)


def test_the_loss_is_the_weighted_mean_of_those_of_the_examples() -> None:
    network = torch.nn.Linear(3, 1)
    weights = torch.tensor([0.5, 0.25, 0.25, 0.0])
    found = task().loss(network, BATCH, weights, {})
    assert torch.allclose(found, torch.dot(weights, squared(network, BATCH)))


class Counted(torch.nn.Linear):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(x)


def test_metrics_and_loss_share_a_call_of_the_network() -> None:
    network = Counted(3, 1)
    found = task().outcomes(network, BATCH)
    assert network.calls == 1
    assert torch.equal(found["loss"], squared(network, BATCH))
    assert torch.equal(found["error"], absolute(network, BATCH)["error"])


def test_what_metrics_change_in_place_is_computed_again() -> None:
    def spoils(network: Any, batch: Any) -> dict[str, Tensor]:
        return {"error": network(batch["x"]).mul_(0)[:, 0]}

    with torch.no_grad():
        network = Counted(3, 1)
        found = task(metrics=spoils).outcomes(network, BATCH)
        assert torch.equal(found["loss"], squared(network, BATCH))


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (lambda network, batch: batch["y"], "should return a dict of tensors, not Tensor"),
        (lambda network, batch: {"error": 0.5}, r"metrics\['error'\]: .*shape \[4\].* not float"),
        (lambda network, batch: {"error": batch["y"].mean()}, r"not \[\]"),
        (lambda network, batch: {"error": batch["x"]}, r"not \[4, 3\]"),
    ],
)
def test_a_metric_is_a_number_for_each_example(metrics: Callable[..., Any], message: str) -> None:
    with pytest.raises(TiebreakError, match=message):
        task(metrics=metrics).outcomes(torch.nn.Linear(3, 1), BATCH)


def test_a_score_is_the_mean() -> None:
    scores, kept = task().score({"error": torch.tensor([1.0, 2.0]).numpy()})
    assert scores == {"error": 1.5}
    assert kept["error"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda: 1 / 0, r"mine\.py: load: ZeroDivisionError: division by zero, at test_own_task\.py"),
        (lambda path: {"x": ROWS}, r"mine\.py: load: TypeError: .*path"),
        (lambda: {"x": ROWS[:3]}, r"mine\.py: load: examples: 3, too few"),
    ],
)
def test_mistakes_of_load_are_one_line(load: Callable[..., Any], message: str) -> None:
    with pytest.raises(TiebreakError, match=message) as caught:
        task(load=load).load("the task's own", None)
    assert "\n" not in str(caught.value)


def test_use_says_how_to_get_the_network() -> None:
    known = TrainedOn(shape=task().shape(DATA), vocabulary={}, options={})
    with pytest.raises(TiebreakError, match=r"load_network"):
        task().answer(torch.nn.Linear(3, 1), "1,2", known, {})
