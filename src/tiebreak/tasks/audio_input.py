"""Features of a user's sound file, computed as for training, from settings that the results folder stores."""

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


class AudioFeatures(NamedTuple):
    """Features [frames, mels] of a sound, its length in seconds, and a note on what was done to it."""

    features: NDArray[np.float32]
    seconds: float
    note: str


def feature_settings(data: SpeechData) -> dict[str, tuple[str, ...]]:
    """The settings of training: both sample rates, the number of bands, and the mean and deviation of each band.

    Numbers are written as `repr`, so that reading them back is exact. No `rates`: the features came ready-made.
    """
    if not data.clips:
        return {}
    return {
        "rates": (str(data.rate), str(data.filter_rate or data.rate), str(data.mels)),
        "mean": tuple(map(repr, data.bank.mean)),
        "deviation": tuple(map(repr, data.bank.deviation)),
    }


def read_features(path: Path, vocabulary: Mapping[str, tuple[str, ...]]) -> AudioFeatures:
    """The features of a WAV or FLAC file."""
    if "rates" not in vocabulary:
        raise TiebreakError(
            f"{printable(path)}: this network was trained on ready-made features and cannot read sound files"
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
    return AudioFeatures(features.astype(np.float32), len(sound.samples) / sound.rate, "; ".join(notes))


def real_time_factor(spent: float, seconds: float) -> str:
    """The time spent and the length of the sound, both in seconds, and their quotient, as text."""
    return f"{_plain(spent)} s for {_plain(seconds)} s of sound: real-time factor {_plain(spent / seconds)}"


def _plain(number: float) -> str:
    """Two digits that count, or all before the point; never with an exponent."""
    digits = 1 - math.floor(math.log10(number)) if number > 0 else 0
    return f"{number:,.{max(0, digits)}f}"
