"""A user's sound as the features that a trained recogniser knows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.speech import audio
from tiebreak.data.speech.front_end import FrontEnd
from tiebreak.data.speech.mel import log_mel
from tiebreak.errors import TiebreakError
from tiebreak.text import printable


class Heard(NamedTuple):
    """Features [frames, mels] of a sound, how many seconds it lasts, and what was done to it."""

    features: NDArray[np.float32]
    seconds: float
    note: str


def hear(path: Path, front_end: FrontEnd | None) -> Heard:
    """The features of a WAV or FLAC file, made as those of training were."""
    if front_end is None:
        raise TiebreakError(
            f"{printable(path)}: this network takes no sound: it was trained on features that came ready-made (or the "
            "plan was made by an earlier version of Tiebreak: `tiebreak run` rewrites it)"
        )
    rate = front_end.rate
    sound = audio.read_audio(path)
    samples = audio.resample(sound.samples, sound.rate, rate)
    try:
        features = log_mel(samples, rate, filter_rate=front_end.filter_rate, mels=front_end.mels)
    except TiebreakError as error:
        raise TiebreakError(f"{printable(path)}: {error}") from None
    features = features.astype(np.float16)  # as they are stored
    if front_end.mean:
        features = ((features - np.array(front_end.mean)) / np.array(front_end.deviation)).astype(np.float16)
    notes = [f"resampled from {sound.rate:,} to {rate:,} samples a second"] if sound.rate != rate else []
    notes += [] if samples.any() else ["silence"]
    return Heard(features.astype(np.float32), len(sound.samples) / sound.rate, "; ".join(notes))


def pace(spent: float, seconds: float) -> str:
    """How long it took to hear and write, in seconds, compared with the sound."""
    return f"{_plain(spent)} s for {_plain(seconds)} s of sound: real-time factor {_plain(spent / seconds)}"


def _plain(number: float) -> str:
    """Two digits that count, or all before the point; never with an exponent."""
    digits = 1 - math.floor(math.log10(number)) if number > 0 else 0
    return f"{number:,.{max(0, digits)}f}"
