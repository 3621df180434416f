from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tiebreak.data.images.image_data import REPORTED_TEST, ImageData
from tiebreak.errors import TiebreakError
from tiebreak.models.cnn import CnnPool
from tiebreak.models.mlp import Mlp
from tiebreak.plan.resolve import complete
from tiebreak.study import registry
from tiebreak.tasks.classify import Classify

TASK = Classify()
OPTIONS = complete(registry.TASKS["classify"].options, {})


def data(channels: int = 0, classes: int = 4, per_class: int = 300, name: str = "octmnist") -> ImageData:
    rng = np.random.default_rng(0)
    count = classes * per_class
    shape = (count, 6, 5, channels) if channels else (count, 6, 5)
    labels = np.arange(count) % classes
    images = rng.integers(0, 256, shape).astype(np.uint8)
    return ImageData(
        name=name,
        images=dict.fromkeys(("train", "val", "test"), images),
        labels=dict.fromkeys(("train", "val", "test"), labels.astype(np.int64)),
        classes=classes,
        checksum="",
        official=None,
        licence="",
        citation="",
        reported_test=REPORTED_TEST.get(name, ()),
    )


@pytest.mark.parametrize("channels", [0, 3])
def test_pixels_are_scaled_and_channels_come_first(channels: int) -> None:
    given_data = data(channels)
    split = TASK.split(given_data, "val", {**OPTIONS, "divisor": 256}, {})
    shape = TASK.shape(given_data)
    assert split["images"].shape == (1200, shape.channels, 6, 5)
    assert split["images"].dtype == torch.float32
    raw = given_data.images["val"][7, 2, 3]
    np.testing.assert_array_equal(split["images"][7, :, 2, 3], np.atleast_1d(raw) / np.float32(256))


def test_as_reported_takes_529_test_images_and_only_there() -> None:
    options = {**OPTIONS, "test_images": "as-reported"}
    assert TASK.sizes(data(), options) == {"train": 1200, "val": 1200, "test": 529}
    labels = TASK.split(data(), "test", options, {})["labels"]
    assert torch.bincount(labels).tolist() == [182, 55, 42, 250]
    with pytest.raises(TiebreakError):
        TASK.sizes(data(per_class=100), options)
    assert TASK.sizes(data(name="kmnist"), options)["test"] == 1200, "the reports used all of these"


def test_shuffling_moves_every_image_by_the_same_permutation() -> None:
    plain, shuffled = (
        TASK.split(data(), "test", {**OPTIONS, "shuffle_pixels": on}, {})["images"] for on in (False, True)
    )
    first, second = plain.flatten(1), shuffled.flatten(1)
    assert not torch.equal(first, second)
    torch.testing.assert_close(first.sort(dim=1).values, second.sort(dim=1).values)
    moved = [
        int((first[:, None, pixel] == second.T[:, :, None].transpose(0, 1)[:, :, 0]).all(0).float().argmax())
        for pixel in range(30)
    ]
    assert sorted(moved) == list(range(30)), "one place for each pixel, the same in all images"


def test_the_evaluation_can_move_the_images() -> None:
    still, moved = (TASK.split(data(), "test", OPTIONS, {"shift": by})["images"] for by in (0, 2))
    assert torch.equal(moved[..., 2:], still[..., :-2])
    assert (moved[..., :2] == 0).all()


class Table(nn.Module):
    """Logits looked up by the first pixel: a network whose outputs are known."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, images: Tensor) -> Tensor:
        return self.logits[images[:, 0, 0, 0].long()]


@given(st.integers(1, 9), st.floats(0.01, 0.9), st.integers(0, 10))
def test_loss_is_the_cross_entropy_of_torch(batch: int, smoothing: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(batch, 5, generator=generator, dtype=torch.float64)
    split = {
        "images": torch.arange(batch)[:, None, None, None].double(),
        "labels": torch.randint(0, 5, (batch,), generator=generator),
    }
    weights = torch.full((batch,), 1 / batch, dtype=torch.float64)
    for hypers, share in (({}, 0.0), ({"label_smoothing": torch.tensor(smoothing, dtype=torch.float64)}, smoothing)):
        expected = F.cross_entropy(logits, split["labels"], label_smoothing=share)
        torch.testing.assert_close(TASK.loss(Table(logits), split, weights, hypers), expected)


def test_outcomes_and_metrics() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 3.0], [1.0, 0.0]])
    split = {"images": torch.arange(3)[:, None, None, None].float(), "labels": torch.tensor([0, 1, 1])}
    outcomes = TASK.outcomes(Table(logits), split)
    assert outcomes["accuracy"].tolist() == [1, 1, 0]
    metrics, kept = TASK.score({name: values.numpy() for name, values in outcomes.items()})
    assert metrics["accuracy"] == pytest.approx(2 / 3)
    assert metrics["loss"] == pytest.approx(float(F.cross_entropy(logits, split["labels"])))
    assert set(metrics) == set(registry.TASKS["classify"].metrics)
    assert kept["prediction"].tolist() == outcomes["prediction"].tolist() == [0, 1, 0]
    assert kept["label"].tolist() == [0, 1, 1]
    assert outcomes["confidence"].tolist() == pytest.approx(F.softmax(logits, dim=1).amax(dim=1).tolist())
    assert metrics["balanced_accuracy"] == pytest.approx((1 + 1 / 2) / 2)
    assert metrics["macro_f1"] == pytest.approx(2 / 3)


def test_disturbed_is_the_mean_over_the_six_moves() -> None:
    split = TASK.split(data(), "test", OPTIONS, {"disturbed": True})
    assert len(split["images"]) == len(split["labels"]) == 6 * 1200
    still = TASK.split(data(), "test", OPTIONS, {})
    assert torch.equal(split["labels"][:1200], still["labels"])
    assert torch.equal(split["images"][:1200, ..., :-2], still["images"][..., 2:]), "the first move is 2 pixels left"
    assert not torch.equal(split["images"][2400:3600], still["images"])


def test_exhibits_show_curves_examples_and_maps() -> None:
    network = CnnPool(TASK.shape(big := bigger()))
    shown = TASK.exhibits(network.eval(), big, OPTIONS, [5, 3, 8, 1])
    assert set(shown) == {"robustness", "examples", "activations"}
    curves = shown["robustness"]
    for kind, still in (("shift", 0.0), ("rotate", 0.0), ("scale", 1.0)):
        assert len(curves[f"{kind}_value"]) == len(curves[f"{kind}_accuracy"]) == 9
        with torch.no_grad():
            right = network(TASK.split(big, "test", OPTIONS, {})["images"]).argmax(1).numpy() == big.labels["test"]
        assert curves[f"{kind}_accuracy"][curves[f"{kind}_value"] == still] == pytest.approx(right.mean(), abs=1e-6)
    np.testing.assert_array_equal(shown["examples"]["images"], big.images["test"][[5, 3, 8, 1]])
    np.testing.assert_array_equal(shown["examples"]["labels"], big.labels["test"][[5, 3, 8, 1]])
    assert shown["activations"]["maps"].shape == (3, 8, 28, 28)
    assert (shown["activations"]["maps"] >= 0).all()
    assert set(TASK.exhibits(network, big, OPTIONS, [])) == {"robustness"}
    assert "activations" not in TASK.exhibits(Mlp(TASK.shape(big), match="cnn-pool").eval(), big, OPTIONS, [1])


def bigger() -> ImageData:
    rng = np.random.default_rng(1)
    images = rng.integers(0, 256, (40, 28, 28)).astype(np.uint8)
    small = data()
    splits = ("train", "val", "test")
    labels = dict.fromkeys(splits, (np.arange(40) % 4).astype(np.int64))
    return replace(small, images=dict.fromkeys(splits, images), labels=labels)
