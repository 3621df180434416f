from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tiebreak.data.speech import speech_sets, spoken_numbers
from tiebreak.data.speech.feature_cache import Bank
from tiebreak.data.speech.mel import log_mel
from tiebreak.data.speech.speech_sets import SpeechData, checksum, load
from tiebreak.errors import TiebreakError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TIEBREAK_DATA", raising=False)


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
    assert data.offsets("test").tolist() == [0, 5, 11]
    assert data.frames("test")[:, 0].tolist() == [*range(10, 21)]
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


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(TiebreakError, match="no speech data set is called 'spoken-number'; did you mean 'spoken-numb"):
        load("spoken-number")
    with pytest.raises(TiebreakError, match="an4: only ljspeech and spoken-ljspeech can be limited"):
        load("an4", limit=3)
    with pytest.raises(TiebreakError, match=r"\./nowhere: no such file or folder"):
        load("./nowhere")


def test_the_front_end_is_here_too() -> None:
    assert speech_sets.log_mel is log_mel


def test_spoken_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thirtieth of them, so that it takes a second."""
    pytest.importorskip("espeakng_loader")
    whole = checksum("spoken-numbers")
    monkeypatch.setattr(spoken_numbers, "REPEATS", 0)
    monkeypatch.setattr(spoken_numbers, "DRAWN", {"train": (20, 60), "val": (4, 6), "test": (4, 6)})
    calls: list[tuple[int, int]] = []
    data = load("spoken-numbers", progress=lambda *done: calls.append(done))
    assert data.sizes == {"train": 80, "val": 10, "test": 10}
    assert data.checksum == checksum("spoken-numbers") != whole
    assert not calls
    assert 50 < data.longest <= 260
    assert calls == [(50, 100), (100, 100)]
    training = data.frames("train").astype(np.float64)
    np.testing.assert_allclose(training.mean(axis=0), 0, atol=2e-3)
    np.testing.assert_allclose(training.std(axis=0), 1, atol=5e-3)
    again = load("spoken-numbers", progress=lambda *_: pytest.fail("made again"))
    np.testing.assert_array_equal(again.padded("test"), data.padded("test"))
    assert data.synthetic
    assert data.description()[0].startswith("spoken-numbers: synthetic speech, 80 train, 10 val, 10 test; 80 features")
    assert any("eSpeak NG" in note for note in data.notes)


def test_loading_needs_no_torch_and_no_slow_part_of_scipy() -> None:
    heavy = ("torch", "scipy.signal", "scipy.stats", "soundfile")
    code = f"import sys, tiebreak.data.speech.speech_sets; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
