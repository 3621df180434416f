from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tiebreak import names
from tiebreak.data.images import ImageData
from tiebreak.errors import TiebreakError
from tiebreak.plan import complete
from tiebreak.tasks.classify import Classify

TASK = Classify()
OPTIONS = complete(names.TASKS["classify"].options, {})


def data(channels: int = 0, classes: int = 4, per_class: int = 300) -> ImageData:
    rng = np.random.default_rng(0)
    count = classes * per_class
    shape = (count, 6, 5, channels) if channels else (count, 6, 5)
    labels = np.arange(count) % classes
    images = rng.integers(0, 256, shape).astype(np.uint8)
    return ImageData(
        name="x",
        images=dict.fromkeys(("train", "val", "test"), images),
        labels=dict.fromkeys(("train", "val", "test"), labels.astype(np.int64)),
        classes=classes,
        checksum="",
        official=None,
        licence="",
        citation="",
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
    metrics = TASK.metrics({name: values.numpy() for name, values in outcomes.items()})
    assert metrics["accuracy"] == pytest.approx(2 / 3)
    assert metrics["loss"] == pytest.approx(float(F.cross_entropy(logits, split["labels"])))
    assert set(metrics) == set(names.TASKS["classify"].metrics)
