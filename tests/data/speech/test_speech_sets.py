from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tiebreak.data.speech import spoken_numbers
from tiebreak.data.speech.speech_sets import checksum, load
from tiebreak.errors import TiebreakError

pytestmark = pytest.mark.usefixtures("empty_cache")


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(TiebreakError, match="no speech data set is called 'spoken-number'; did you mean 'spoken-numb"):
        load("spoken-number")
    with pytest.raises(TiebreakError, match=r"\./nowhere: no such file or folder"):
        load("./nowhere")


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
    training = data.bank.values[: data.lengths("train").sum()].astype(np.float64)
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
