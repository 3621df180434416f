"""Sound files from outside, from the file to the reply of `use`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support import tiny
from support.small_study import loop_machine, workers_here
from support.toy_speech import toy_recogniser, toy_speech
from tiebreak import api
from tiebreak.cli.app import main
from tiebreak.cli.use import use
from tiebreak.data.speech import audio
from tiebreak.data.speech.alphabet import SYMBOLS
from tiebreak.errors import TiebreakError
from tiebreak.plan.resolve import complete
from tiebreak.study import registry
from tiebreak.study.schema import Study
from tiebreak.tasks.audio_input import read_features, real_time_factor
from tiebreak.tasks.interface import TrainedOn
from tiebreak.tasks.transcribe import Transcribe

soundfile = pytest.importorskip("soundfile")

TASK = Transcribe()
OPTIONS = complete(registry.TASKS["transcribe"].options, {})


def test_features_that_came_ready_made_cannot_be_used_on_sound(tmp_path: Path) -> None:
    vocabulary = TASK.with_options(OPTIONS).vocabulary(toy_speech())
    assert vocabulary == {"symbols": tuple(SYMBOLS)}
    known = TrainedOn(shape=TASK.with_options(OPTIONS).shape(toy_speech()), vocabulary=vocabulary, options=OPTIONS)
    with pytest.raises(TiebreakError, match="ready-made"):
        TASK.answer(toy_recogniser(), str(tmp_path / "a.wav"), known, {"beam": 1})


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """The results of a small study, and the folder of its data."""
    folder = tiny.write_speech(tmp_path_factory.mktemp("spoken"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIEBREAK_CACHE", str(folder / "cache"))
        study = Study.model_validate(
            tiny.content(
                task="transcribe",
                data="./speech",
                metric="dl",
                optimiser={"kind": "adam"},
                fixed={"lr": 0.01},
                budget={"epochs": 4, "batch": 16},
                arms=[
                    {"name": "attention", "design": "speech-attention", "build": {"width": 16}},
                    {"name": "lstm", "design": "speech-lstm", "build": {"width": 16}},
                ],
                comparisons=[{"a": "attention", "b": "lstm"}],
                seeds=1,
            )
        )
        with workers_here():
            api.run(study, folder / "out", machine=loop_machine(folder), listen=lambda message: None)
        yield folder / "out", folder / "speech"


def test_features_of_a_sound_file_are_those_of_training(spoken: tuple[Path, Path]) -> None:
    out, speech = spoken
    result = api.open_result(out)
    task, options = TASK.with_options(OPTIONS), OPTIONS
    loaded = task.load("./speech", speech.parent)
    for index in range(5):
        audio_features = read_features(speech / "test" / f"{index}.wav", result.plan.data.front_end)
        place = loaded.utterances["test"].index(f"test/{index}.wav")
        np.testing.assert_array_equal(audio_features.features, loaded.features("test", place).astype(np.float32))
        assert audio_features.note == ""
    assert task.shape(loaded).length == 4
    assert options["mask_padding"]


def test_use_transcribes_and_tells_how_fast(spoken: tuple[Path, Path], tmp_path: Path) -> None:
    out, speech = spoken
    used = use(out, str(speech / "test" / "0.wav"), how={"beam": 3})
    assert set(used.reply.answers[0].text) <= set(SYMBOLS)
    assert "real-time factor" in used.reply.note
    samples, _ = soundfile.read(speech / "test" / "0.wav")
    soundfile.write(tmp_path / "long.flac", np.tile(samples, 9), 44_100)
    note = use(out, str(tmp_path / "long.flac")).reply.note
    assert "resampled from 44,100 to 16,000" in note


def test_the_time_includes_reading_the_sound(spoken: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    read, now = audio.read_audio, [100.0]

    def slowly(path: Path) -> audio.Sound:
        now[0] += 7.0
        return read(path)

    monkeypatch.setattr(audio, "read_audio", slowly)
    monkeypatch.setattr("tiebreak.tasks.transcribe.time.perf_counter", lambda: now[0])
    assert "7.0 s for" in use(spoken[0], str(spoken[1] / "test" / "0.wav")).reply.note


@pytest.mark.parametrize(
    ("spent", "seconds", "told"),
    [
        (0.1034, 120.4, "0.10 s for 120 s of sound: real-time factor 0.00086"),
        (3.14, 2, "3.1 s for 2.0 s of sound: real-time factor 1.6"),
        (12.3, 600, "12 s for 600 s of sound: real-time factor 0.021"),
        (0.0, 1.26, "0 s for 1.3 s of sound: real-time factor 0"),
    ],
)
def test_times_are_plain_decimals(spent: float, seconds: float, told: str) -> None:
    assert real_time_factor(spent, seconds) == told


@pytest.mark.parametrize("given", ["", "  "])
def test_no_file_at_all_is_said_so(spoken: tuple[Path, Path], given: str) -> None:
    with pytest.raises(TiebreakError, match=r"no sound file.*WAV or FLAC"):
        use(spoken[0], given)


@pytest.mark.parametrize(
    ("name", "told"),
    [("empty.wav", "no sound"), ("nan.wav", "sample 3 is nan"), ("short.wav", "201 or more"), ("gone.wav", "gone.wav")],
)
def test_what_is_no_sound_is_one_line(spoken: tuple[Path, Path], tmp_path: Path, name: str, told: str) -> None:
    path = tmp_path / name
    if name == "empty.wav":
        soundfile.write(path, np.zeros(0), 16_000)
    elif name == "nan.wav":
        soundfile.write(path, np.array([0.0] * 3 + [np.nan] * 500), 16_000, subtype="FLOAT")
    elif name == "short.wav":
        soundfile.write(path, np.zeros(50), 16_000)
    with pytest.raises(TiebreakError) as error:
        use(spoken[0], str(path))
    assert told in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_the_command_line_says_it_in_one_line_with_exit_code_2(
    spoken: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.wav").write_text("not a sound", "utf-8")
    monkeypatch.setattr("sys.argv", ["tiebreak", "use", str(spoken[0]), str(tmp_path / "text.wav")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.strip().splitlines()) == 1
    assert "text.wav" in told.err


def test_the_command_line_shows_the_transcript(
    spoken: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tiebreak", "use", str(spoken[0]), str(spoken[1] / "test" / "1.wav")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert "real-time factor" in " ".join(capsys.readouterr().out.split())
