from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from tiebreak.layers import image_augment
from tiebreak.layers.dropout import step_keys

KEY = step_keys(5, 0, 2, 1)


def picture(rows: int = 4, side: int = 6) -> Tensor:
    return torch.arange(1.0, rows * side * side + 1).view(rows, 1, side, side)


def test_numbers_belong_to_run_step_and_example_not_to_the_place_in_the_batch() -> None:
    first = image_augment.uniforms(KEY[0, 0], torch.tensor([3, 8, 5]), 4)
    turned = image_augment.uniforms(KEY[0, 0], torch.tensor([5, 3, 8]), 4)
    assert all(torch.equal(one[[2, 0, 1]], other) for one, other in zip(first, turned, strict=True))
    later = image_augment.uniforms(KEY[1, 0], torch.tensor([3, 8, 5]), 4)
    assert not any(torch.equal(one, other) for one, other in zip(first, later, strict=True))


def test_numbers_are_uniform_and_unrelated() -> None:
    drawn = image_augment.uniforms(KEY[0, 0], torch.arange(20_000), 9)
    assert all(stats.kstest(each.numpy(), "uniform").pvalue > 1e-3 for each in drawn)
    assert np.abs(np.corrcoef(torch.stack(drawn).numpy()) - np.eye(9)).max() < 0.03


def test_a_shift_is_that_of_numpy_with_zeros_coming_in() -> None:
    images, drawn = picture(), [torch.tensor([0.0, 0.99, 0.5, 0.3]), torch.tensor([0.99, 0.5, 0.0, 0.5])]
    moved = image_augment.shift(images, 2, drawn)
    for row in range(4):
        down, right = (int(float(each[row]) * 5) - 2 for each in drawn)
        padded = np.pad(images[row, 0].numpy(), 2)
        wanted = padded[2 - down : 8 - down, 2 - right : 8 - right]
        assert np.array_equal(moved[row, 0].numpy(), wanted)


def test_a_flip_turns_some_images_round() -> None:
    images = picture(2)
    flipped = image_augment.flip(images, [torch.tensor([0.2, 0.7])])
    assert torch.equal(flipped[0], images[0].flip(2))
    assert torch.equal(flipped[1], images[1])


def test_a_crop_of_everything_is_the_image_and_a_smaller_one_its_interpolation() -> None:
    images, none = picture(2), torch.zeros(2)
    whole = image_augment.crop(images, 1.0, [none, none, none])
    assert torch.allclose(whole, images)
    half = image_augment.crop(images, 0.5, [none, none, none])
    size = torch.arange(6) * 0.5
    assert torch.allclose(half[0, 0], 1 + 6 * size[:, None] + size[None, :])  # the image is a plane


def test_cutout_is_a_square_of_zeros_cut_off_at_the_border() -> None:
    images = picture(2)
    cut = image_augment.cutout(images, 3, [torch.tensor([0.5, 0.0]), torch.tensor([0.5, 0.0])])
    assert int((cut[0] == 0).sum()) == 9
    assert int((cut[1] == 0).sum()) == 4
    assert torch.equal(cut[0, 0, 2:5, 2:5], torch.zeros(3, 3))


def test_rows_are_mixed_with_the_next_but_never_with_padding() -> None:
    assert image_augment.partners(torch.tensor([0.3, 0.3, 0.4, 0.0])).tolist() == [1, 2, 0, 0]
    assert image_augment.partners(torch.full((3,), 1 / 3)).tolist() == [1, 2, 0]


@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_shares_are_beta_distributed(alpha: float) -> None:
    shares = image_augment.mixing(alpha, torch.rand(20_000, generator=torch.Generator().manual_seed(0)), torch.float64)
    assert stats.kstest(shares.numpy(), stats.beta(alpha, alpha).cdf).pvalue > 1e-3
