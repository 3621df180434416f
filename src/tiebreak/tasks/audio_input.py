"""Sound from outside as a trained recogniser knows it: what a results folder has to remember, and how it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.speech import audio
from tiebreak.data.speech.mel import log_mel
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.errors import TiebreakError
from tiebreak.text import printable


class Heard(NamedTuple):
    """Features [frames, mels] of a sound, how many seconds it lasts, and what was done to it."""

    features: NDArray[np.float32]
    seconds: float
    note: str


def remembered(data: SpeechData) -> dict[str, tuple[str, ...]]:
    """What it takes to hear as in training: both rates, the number of bands, and what bands were normalised by.

    Numbers are written so that reading them back gives the very same. No `rates`: the features came ready-made.
    """
    if not data.clips:
        return {}
    return {
        "rates": (str(data.rate), str(data.filter_rate or data.rate), str(data.mels)),
        "mean": tuple(map(repr, data.bank.mean)),
        "deviation": tuple(map(repr, data.bank.deviation)),
    }


def hear(path: Path, vocabulary: Mapping[str, tuple[str, ...]]) -> Heard:
    """The features of a WAV or FLAC file."""
    if "rates" not in vocabulary:
        raise TiebreakError(
            f"{printable(path)}: this network was trained on features that came ready-made, and hears no sound"
        )
    rate, filter_rate, mels = map(int, vocabulary["rates"])
    sound = audio.read_audio(path)
    samples = audio.resample(sound.samples, sound.rate, rate)
    try:
        features = log_mel(samples, rate, filter_rate=filter_rate, mels=mels).astype(np.float16)  # as they are stored
    except TiebreakError as error:
        raise TiebreakError(f"{printable(path)}: {error}") from None
    if vocabulary["mean"]:
        mean, deviation = (np.array(list(map(float, vocabulary[name]))) for name in ("mean", "deviation"))
        features = ((features - mean) / deviation).astype(np.float16)
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
