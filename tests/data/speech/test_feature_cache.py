from __future__ import annotations

import json
import random
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tiebreak.data.speech.espeak import Utterance
from tiebreak.data.speech.feature_cache import Bank, Recipe, _opened, open_bank
from tiebreak.data.speech.mel import log_mel
from tiebreak.errors import TiebreakError

soundfile = pytest.importorskip("soundfile")

RECIPE = Recipe(name="toy", checksum="0" * 64, rate=16_000, filter_rate=16_000, normalised=False)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "features"


def noise(index: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(index)
    return rng.uniform(-0.5, 0.5, 400 + 170 * index) * rng.uniform(0.1, 1)


@pytest.fixture
def clips(tmp_path: Path) -> list[Path]:
    """Six files of noise, each longer than the one before."""
    paths = [tmp_path / f"{index}.wav" for index in range(6)]
    for index, path in enumerate(paths):
        soundfile.write(path, noise(index), 16_000, subtype="DOUBLE")
    return paths


def names(folder: Path) -> list[str]:
    """What is in the cache besides the lock file."""
    return sorted(path.suffix or path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_every_clip_has_its_features_in_order(clips: list[Path]) -> None:
    bank = open_bank(RECIPE, clips, 4)
    assert bank.values.dtype == np.float16
    assert bank.values.shape == (int(bank.offsets[-1]), 80)
    for index in range(6):
        expected = log_mel(noise(index), 16_000).astype(np.float16)
        np.testing.assert_allclose(bank.values[bank.offsets[index] : bank.offsets[index + 1]], expected, atol=1e-3)
    assert (bank.silent, bank.notes) == ((), ())


def test_the_second_time_nothing_is_made_and_the_file_is_mapped(clips: list[Path], cache: Path) -> None:
    calls: list[tuple[int, int]] = []
    first = open_bank(RECIPE, clips, 4, lambda *done: calls.append(done))
    assert calls == [(6, 6)]
    for path in clips:
        path.unlink()
    second = open_bank(RECIPE, clips, 4, lambda *done: calls.append(done))
    assert len(calls) == 1
    assert isinstance(second.values, np.memmap)
    assert not second.values.flags.writeable
    np.testing.assert_array_equal(first.values, second.values)
    assert names(cache) == [".json", ".npy"]


def test_the_number_of_workers_changes_nothing(clips: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiebreak.data.speech.espeak.CHUNK", 2)
    contents = []
    for workers in (1, 3):
        open_bank(RECIPE, clips, 4, workers=workers)
        contents.append(RECIPE.path.read_bytes())
        RECIPE.path.unlink()
    assert contents[0] == contents[1]


def test_normalised_features_have_mean_0_and_variance_1_over_the_training_clips(clips: list[Path]) -> None:
    recipe = replace(RECIPE, normalised=True)
    bank = open_bank(recipe, clips, 4)
    training = bank.values[: bank.offsets[4]].astype(np.float64)
    np.testing.assert_allclose(training.mean(axis=0), 0, atol=2e-3)
    np.testing.assert_allclose(training.std(axis=0), 1, atol=5e-3)
    assert recipe.path != RECIPE.path


def test_sound_is_resampled_to_the_rate_of_the_recipe(tmp_path: Path) -> None:
    path = tmp_path / "x.flac"
    soundfile.write(path, np.zeros((96_000, 2)), 96_000)
    bank = open_bank(RECIPE, [path], 1)
    assert (len(bank.values), bank.silent) == (100, (0,))


def test_files_and_spoken_text_may_be_mixed(clips: list[Path]) -> None:
    pytest.importorskip("espeakng_loader")
    bank = open_bank(RECIPE, [clips[0], Utterance("two", "en-us", 200, 50), clips[1]], 3)
    lengths = np.diff(bank.offsets)
    assert lengths[0] == 2
    assert 20 < lengths[1] < 80


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def foreign(path: Path) -> None:
    other = replace(RECIPE, checksum="f" * 64)
    open_bank(other, sorted(path.parents[2].glob("*.wav")), 4)
    path.with_suffix(".json").write_bytes(other.path.with_suffix(".json").read_bytes())


def older(path: Path) -> None:
    header = json.loads(path.with_suffix(".json").read_text())
    del header["digest"]
    path.with_suffix(".json").write_text(json.dumps(header))


def headless(path: Path) -> None:
    path.with_suffix(".json").write_text('{"recipe": ')


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (flip, "damaged features"),
        (cut, "damaged features"),
        (foreign, "features of something else"),
        (headless, "a damaged or older description"),
        (older, "a damaged or older description"),
    ],
)
def test_a_cache_that_is_damaged_or_not_ours_is_made_again_and_told(clips: list[Path], harm: object, told: str) -> None:
    good = open_bank(RECIPE, clips, 4)
    kept = np.array(good.values)
    assert callable(harm)
    harm(RECIPE.path)
    again = open_bank(RECIPE, clips, 4)
    np.testing.assert_array_equal(again.values, kept)
    assert len(again.notes) == 1
    assert again.notes[0].startswith(f"{RECIPE.path}: {told}")
    assert again.notes[0].endswith("; made again")
    assert open_bank(RECIPE, clips, 4).notes == ()


def test_every_bit_of_the_description_is_covered(clips: list[Path]) -> None:
    open_bank(RECIPE, clips, 4)
    path, chance = RECIPE.path.with_suffix(".json"), random.Random(0)
    whole = path.read_bytes()
    for _ in range(300):
        content = bytearray(whole)
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        assert isinstance(_opened(RECIPE, len(clips)), str)
    path.write_bytes(whole)
    assert isinstance(_opened(RECIPE, len(clips)), Bank)


def test_a_bad_clip_leaves_nothing_behind(clips: list[Path], cache: Path) -> None:
    clips[4].write_text("no sound")
    with pytest.raises(TiebreakError, match=r"4\.wav: no sound that can be read"):
        open_bank(RECIPE, clips, 4)
    assert names(cache) == []
    soundfile.write(clips[4], np.zeros(100), 16_000)
    with pytest.raises(TiebreakError, match=r"4\.wav: too short: 100 samples of sound; a spectrogram needs 201"):
        open_bank(RECIPE, clips, 4)
    assert names(cache) == []


def test_what_a_killed_process_left_is_swept_away(clips: list[Path], cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / f".{RECIPE.path.name}.0a1b.part").touch()
    RECIPE.path.with_suffix(".lock").touch()
    open_bank(RECIPE, clips, 4)
    assert names(cache) == [".json", ".npy"]


def test_a_cache_that_cannot_be_written_is_one_clear_line(
    clips: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "file"))
    with pytest.raises(TiebreakError, match=r"features: cannot be written: .*; make room, or set TIEBREAK_CACHE"):
        open_bank(RECIPE, clips, 4)


def test_two_at_once_make_it_once(clips: list[Path]) -> None:
    calls: list[tuple[int, int]] = []
    banks: list[Bank] = []
    threads = [
        threading.Thread(target=lambda: banks.append(open_bank(RECIPE, clips, 4, lambda *done: calls.append(done))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(banks) == 4
    assert calls == [(6, 6)]


def test_what_features_were_normalised_by_is_kept_with_them(clips: list[Path]) -> None:
    plain = open_bank(RECIPE, clips, 4)
    assert plain.mean == plain.deviation == ()
    bank = open_bank(replace(RECIPE, normalised=True), clips, 4)
    again = open_bank(replace(RECIPE, normalised=True), clips, 4)
    assert (again.mean, again.deviation) == (bank.mean, bank.deviation)
    expected = (plain.values.astype(np.float64) - bank.mean) / bank.deviation
    np.testing.assert_allclose(bank.values, expected, atol=5e-3)
