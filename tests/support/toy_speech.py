"""Speech data without sound, and a network for it."""

from __future__ import annotations

import numpy as np
import torch

from tiebreak.data.speech.feature_cache import Bank
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.data.splits import SPLITS
from tiebreak.models.design import Clips
from tiebreak.models.recogniser import SpeechLstm

TEXTS = ("one", "Two!", "t" * 120, "")


def toy_speech(mels: int = 5) -> SpeechData:
    """Four utterances in each split, of 3, 4, 5 and 6 frames."""
    sizes = [3, 4, 5, 6] * len(SPLITS)
    values = np.random.default_rng(0).normal(size=(sum(sizes), mels)).astype(np.float16)
    return SpeechData(
        name="toy",
        texts=dict.fromkeys(SPLITS, TEXTS),
        utterances=dict.fromkeys(SPLITS, ("a", "b", "c", "d")),
        ready=Bank(values=values, offsets=np.cumsum([0, *sizes])),
        rate=16_000,
        mels=mels,
        checksum="0" * 64,
    )


def toy_recogniser() -> SpeechLstm:
    """A small recogniser for the toy data, in float64 and evaluation mode."""
    torch.manual_seed(0)
    return SpeechLstm(Clips(mels=5, frames=6, length=98), 16).double().eval()
