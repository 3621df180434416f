from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tiebreak.data.speech import espeak, espeak_process, spoken_numbers
from tiebreak.data.speech.espeak import Utterance, speak_chunk, version
from tiebreak.errors import TiebreakError

espeakng_loader = pytest.importorskip("espeakng_loader")

SAID = [Utterance(f"number {index}", f"en-us+m{index % 3 + 1}", 200 + index, 40) for index in range(7)]


def test_speech_is_sound_of_a_plausible_length() -> None:
    (short, long) = speak_chunk(
        [Utterance("one", "en-us", 175, 50), Utterance("one hundred and twenty one", "en", 175, 50)]
    )
    assert short.dtype == np.int16
    assert 0.2 < len(short) / espeak.RATE < 1 < len(long) / espeak.RATE < 3
    assert np.abs(long).max() > 5000


def test_speed_pitch_and_voice_are_heard() -> None:
    texts = ("en-us", 150, 50), ("en-us", 300, 50), ("en-us", 150, 90), ("en-us+f1", 150, 50)
    plain, fast, high, other = (speak_chunk([Utterance("seventy", *how)])[0] for how in texts)
    assert len(fast) < 0.7 * len(plain)
    assert len({sound.tobytes() for sound in (plain, fast, high, other)}) == 4


def test_a_chunk_is_the_same_every_time_also_beside_others() -> None:
    alone = speak_chunk(SAID)
    with ThreadPoolExecutor(3) as pool:
        for chunk in pool.map(speak_chunk, [SAID] * 3):
            for one, two in zip(alone, chunk, strict=True):
                np.testing.assert_array_equal(one, two)


def test_the_version_is_known_and_both_sides_agree_on_the_rate() -> None:
    assert version()[0].isdigit()
    assert espeak.RATE == espeak_process.RATE


def test_an_unknown_voice_is_an_error_not_the_voice_before() -> None:
    for voice in ("xx", "xx+m1", "en-us+nobody"):
        with pytest.raises(TiebreakError) as caught:
            speak_chunk([SAID[0], Utterance("one", voice, 175, 50)])
        assert repr(voice) in str(caught.value)


def test_a_text_without_sound_is_an_error() -> None:
    with pytest.raises(TiebreakError, match="no sound for ''"):
        speak_chunk([Utterance("", "en-us", 175, 50)])


def test_without_the_package_there_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    for function in (version, lambda: speak_chunk(SAID), spoken_numbers.load_numbers):
        with pytest.raises(TiebreakError, match=r"espeakng-loader, which is not installed; `pip install 'tiebreak\["):
            function()


def test_no_voice_of_ours_has_breath_and_each_variant_is_there() -> None:
    folder = Path(espeakng_loader.get_data_path()) / "voices" / "!v"
    for variants in spoken_numbers.VARIANTS.values():
        for variant in variants:
            assert "breath" not in (folder / variant).read_text(encoding="utf-8", errors="replace").lower(), variant


def test_all_voices_of_the_spoken_numbers_are_accepted() -> None:
    voices = [
        f"{accent}+{name}"
        for accent in spoken_numbers.ACCENTS
        for names in spoken_numbers.VARIANTS.values()
        for name in names
    ]
    sounds = speak_chunk([Utterance("one", voice, 400, 50) for voice in voices])
    assert len(sounds) == len(voices)
