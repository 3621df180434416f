"""The training batch of one run with its images changed at random, as the run's augmentation says."""

from __future__ import annotations

from torch import Tensor

from tiebreak.layers import image_augment
from tiebreak.study.augment import Augment
from tiebreak.tasks.interface import Split

DRAWS = {"crop": slice(0, 3), "flip": slice(3, 4), "shift": slice(4, 6), "cutout": slice(6, 8), "mixup": slice(8, 9)}


def augmented(augment: Augment, batch: Split, examples: Tensor, weights: Tensor, key: Tensor) -> dict[str, Tensor]:
    """The batch with other images. With mixup it also has the labels of the partners and each example's own share.

    examples [B]: their places in the data set; weights [B]: 0 for padding; key: one entry of `dropout.step_keys`. Each
    kind of change has numbers of its own, so that adding another does not change it.
    """
    drawn = image_augment.uniforms(key, examples, 9)
    images = batch["images"]
    if augment.crop < 1:
        images = image_augment.crop(images, augment.crop, drawn[DRAWS["crop"]])
    if augment.flip:
        images = image_augment.flip(images, drawn[DRAWS["flip"]])
    if augment.shift:
        images = image_augment.shift(images, augment.shift, drawn[DRAWS["shift"]])
    if augment.cutout:
        images = image_augment.cutout(images, augment.cutout, drawn[DRAWS["cutout"]])
    if not augment.mixup:
        return {**batch, "images": images}
    share = image_augment.mixing(augment.mixup, drawn[DRAWS["mixup"]][0], images.dtype)
    other = image_augment.partners(weights)
    own = share[:, None, None, None]
    mixed = own * images + (1 - own) * images[other]
    return {**batch, "images": mixed, "mixed_labels": batch["labels"][other], "share": share}
