"""SpecAugment one mask at a time: the naive twin that `layers.spec_augment` is compared with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def spec_augment(
    features: NDArray[np.floating],
    rng: np.random.Generator,
    *,
    time_masks: int = 2,
    time_width: int = 40,
    mel_masks: int = 2,
    mel_width: int = 15,
) -> NDArray[np.floating]:
    """A copy of features [frames, mels] with random stretches of time and of bands set to 0.

    Every mask has a width drawn from 0 to its limit, at most half of the axis, and a place drawn from where it fits.
    """
    masked = features.copy()
    for axis, count, limit in ((0, time_masks, time_width), (1, mel_masks, mel_width)):
        length = features.shape[axis]
        for _ in range(count):
            width = int(rng.integers(0, min(limit, length // 2) + 1))
            start = int(rng.integers(0, length - width + 1))
            masked[(slice(None),) * axis + (slice(start, start + width),)] = 0.0
    return masked
