"""Utterances by split, and the features of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tiebreak.data.speech.feature_cache import Bank
from tiebreak.data.speech.front_end import FrontEnd
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.errors import TiebreakError


def toy() -> SpeechData:
    """Three, one and two utterances of 1 to 6 frames, whose features are the number of the frame."""
    offsets = np.array([0, 1, 3, 6, 10, 15, 21])
    texts = {"train": ("a", "b", "c"), "val": ("d",), "test": ("e", "f!")}
    values = np.repeat(np.arange(21, dtype=np.float16)[:, None], 4, axis=1)
    bank = Bank(values=values, offsets=offsets)
    return SpeechData(name="toy", texts=texts, utterances=texts, ready=bank, rate=16_000, mels=4, checksum="0" * 64)


def test_each_split_sees_its_own_frames() -> None:
    data = toy()
    assert data.sizes == {"train": 3, "val": 1, "test": 2}
    assert data.lengths("test").tolist() == [5, 6]
    assert data.features("test", 1)[:, 0].tolist() == [*range(15, 21)]
    assert data.features("val", 0).shape == (4, 4)
    assert data.longest == 6


def test_padding_and_cutting() -> None:
    data = toy()
    padded = data.padded("train")
    assert padded.dtype == np.float16
    assert padded.shape == (3, 6, 4)
    assert padded[:, :, 0].tolist() == [[0, 0, 0, 0, 0, 0], [1, 2, 0, 0, 0, 0], [3, 4, 5, 0, 0, 0]]
    assert data.padded("test", 2, [1])[:, :, 0].tolist() == [[15, 16]]
    assert data.padded("test", 7, np.array([1, 0])).shape == (2, 7, 4)


def test_description() -> None:
    assert toy().description() == [
        "toy: speech, 3 train, 1 val, 2 test; 4 features a frame, 100 frames a second",
        f"toy: split as published; sha256 {'0' * 64}",
        "  characters of the transcripts that become #, being none of a to z, space and , . ? -: 1 ('!' 1)",
    ]


def test_ready_made_features_have_no_front_end_and_keep_their_filters() -> None:
    assert toy().front_end is None
    with pytest.raises(TiebreakError, match=r"toy.*filters"):
        toy().with_filters(16_000)


def test_the_front_end_says_how_sound_became_features() -> None:
    bank = replace(toy().bank, mean=(1.0, 2.0, 3.0, 4.0), deviation=(1.0, 0.5, 0.25, 2.0))
    data = replace(toy(), clips=dict.fromkeys(("train", "val", "test"), (Path("a.wav"),)), ready=bank)
    expected = FrontEnd(rate=16_000, filter_rate=16_000, mels=4, mean=bank.mean, deviation=bank.deviation)
    assert data.front_end == expected
    assert data.with_filters(8_000).front_end == replace(expected, filter_rate=8_000)


def test_notes_tell_long_transcripts_and_silence() -> None:
    texts = {"train": ("a" * 98, "b", "c"), "val": ("d",), "test": ("e", "f")}
    data = replace(toy(), texts=texts, ready=replace(toy().bank, silent=(3,)))
    assert not any("without any sound" in note for note in data.notes)
    assert data.longest == 6  # opens the features
    assert any("97 characters" in note for note in data.notes)
    assert any("without any sound: 1, such as d" in note for note in data.notes)
