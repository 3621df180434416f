from __future__ import annotations

import torch

from tiebreak.layers.dropout import step_keys
from tiebreak.study.augment import Augment
from tiebreak.train.augmentation import augmented

KEY = step_keys(1, 0, 1, 1)[0, 0]
BATCH = {"images": torch.rand(5, 1, 8, 8, generator=torch.Generator().manual_seed(1)), "labels": torch.arange(5)}
EXAMPLES, WEIGHTS = torch.tensor([9, 4, 7, 1, 0]), torch.tensor([0.25, 0.25, 0.25, 0.25, 0.0])


def test_another_kind_of_change_leaves_the_numbers_of_the_first_alone() -> None:
    shifted = augmented(Augment(shift=2), BATCH, EXAMPLES, WEIGHTS, KEY)["images"]
    both = augmented(Augment(shift=2, cutout=2), BATCH, EXAMPLES, WEIGHTS, KEY)["images"]
    assert torch.equal(both[both != 0], shifted[both != 0])
    assert int((both == 0).sum()) > int((shifted == 0).sum())


def test_mixed_images_have_the_labels_and_shares_of_both() -> None:
    found = augmented(Augment(mixup=1.0), BATCH, EXAMPLES, WEIGHTS, KEY)
    assert found["mixed_labels"].tolist() == [1, 2, 3, 0, 0]  # the last row is padding
    for row, other in enumerate(found["mixed_labels"].tolist()):
        share = found["share"][row]
        wanted = share * BATCH["images"][row] + (1 - share) * BATCH["images"][other]
        torch.testing.assert_close(found["images"][row], wanted)
