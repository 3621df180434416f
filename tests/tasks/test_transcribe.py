from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from support import tiny
from tiebreak import api, catalog
from tiebreak.cli.app import main
from tiebreak.cli.use import use
from tiebreak.data.speech import audio
from tiebreak.data.speech.alphabet import END, PAD, START, SYMBOLS, encode
from tiebreak.data.speech.feature_cache import Bank
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.data.splits import SPLITS
from tiebreak.drive.runner import Machine
from tiebreak.errors import TiebreakError
from tiebreak.models import decoding
from tiebreak.models.design import Clips
from tiebreak.models.recogniser import SpeechAttention, SpeechLstm
from tiebreak.plan.resolve import complete
from tiebreak.study import registry
from tiebreak.study.schema import Study
from tiebreak.tasks import similarity
from tiebreak.tasks.audio_input import pace
from tiebreak.tasks.interface import TrainedOn
from tiebreak.tasks.transcribe import Transcribe

soundfile = pytest.importorskip("soundfile")

TASK = Transcribe()
KNOWN = registry.TASKS["transcribe"].options
OPTIONS = complete(KNOWN, {})
REPORTED = complete(KNOWN, registry.TASKS["transcribe"].protocols["as-reported"].options)
TEXTS = ("one", "Two!", "t" * 120, "")


def data(mels: int = 5) -> SpeechData:
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


def test_audited_clips_and_targets_are_as_long_as_the_longest() -> None:
    shape = TASK.with_options(OPTIONS).shape(data())
    assert shape == Clips(mels=5, frames=6, symbols=35, length=98)  # 97 letters and the end
    split = TASK.split(data(), "val", OPTIONS, {})
    assert split["features"].shape == (4, 6, 5)
    assert split["features"].dtype == torch.float16
    assert split["frames"].tolist() == [3, 4, 5, 6]
    assert (split["features"][0, 3:] == 0).all()
    assert split["inputs"][0, :5].tolist() == [START, *encode("one", 99)[1:4], END]
    assert split["targets"][0, :5].tolist() == [*encode("one", 99)[1:4], END, PAD]
    assert split["targets"][2, -1] == END
    assert split["targets"][3, 0] == END
    assert SYMBOLS[split["targets"][1, 3]] == "#"


def test_as_reported_clips_have_2754_frames_that_nobody_masks() -> None:
    assert TASK.with_options(REPORTED).shape(data()) == Clips(mels=5, frames=2754, symbols=35, length=98)
    split = TASK.split(data(), "test", REPORTED, {})
    assert split["features"].shape == (4, 2754, 5)
    assert "frames" not in split


def network() -> SpeechLstm:
    torch.manual_seed(0)
    return SpeechLstm(Clips(mels=5, frames=6, length=98), 16).double().eval()


def doubled(options: dict[str, registry.Scalar]) -> dict[str, Tensor]:
    split = TASK.split(data(), "test", {**options, "frames": 6}, {})
    return {name: values.double() if name == "features" else values for name, values in split.items()}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_torchs_over_the_real_symbols_of_the_batch(smoothing: float) -> None:
    split, weights = doubled(OPTIONS), torch.full((4,), 0.25, dtype=torch.float64)
    hypers = {"label_smoothing": torch.tensor(smoothing, dtype=torch.float64)} if smoothing else {}
    with torch.no_grad():
        found = TASK.with_options(OPTIONS).loss(network(), split, weights, hypers)
        logits = network()(split["features"], split["inputs"], split["frames"])
    wanted = F.cross_entropy(
        logits.flatten(0, 1), split["targets"].flatten(), ignore_index=PAD, label_smoothing=smoothing
    )
    torch.testing.assert_close(found, wanted)


def test_as_reported_padding_counts_in_the_loss_and_smoothing_in_what_is_reported() -> None:
    split, task = doubled(REPORTED), TASK.with_options({**REPORTED, "frames": 6})
    weights = torch.full((4,), 0.25, dtype=torch.float64)
    hypers = {"label_smoothing": torch.tensor(0.1, dtype=torch.float64)}
    with torch.no_grad():
        found = task.loss(network(), split, weights, hypers)
        logits = network()(split["features"], split["inputs"])
        outcomes = {name: values.numpy() for name, values in task.outcomes(network(), split).items()}
    wanted = F.cross_entropy(logits.flatten(0, 1), split["targets"].flatten(), label_smoothing=0.1)
    torch.testing.assert_close(found, wanted)
    assert task.score(outcomes)[0]["loss"] == pytest.approx(float(wanted))
    assert outcomes["written"].shape == (4, 98)


def test_an_example_of_weight_zero_does_not_count() -> None:
    split = doubled(OPTIONS)
    weights = torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=torch.float64)
    with torch.no_grad():
        padded = TASK.loss(network(), split, weights, {})
        fewer = TASK.loss(network(), {name: values[:2] for name, values in split.items()}, weights[:2], {})
    torch.testing.assert_close(padded, fewer)


def outcomes_of(wanted: list[str], written: list[str], length: int = 8) -> dict[str, NDArray[np.float32]]:
    """As evaluation hands them over: everything as float32; what was written is all ends after its first."""
    right = [encode(text, length + 1)[1:] for text in wanted]
    said = [[SYMBOLS.index(symbol) for symbol in text.ljust(length, ">")[:length]] for text in written]
    many = np.array([row.index(END) + 1 for row in right], np.float32)
    return {
        "loss": many * np.float32(0.5),
        "symbols": many,
        "targets": np.array(right, np.float32),
        "written": np.array(said, np.float32),
        "length": np.array([len(text) for text in written], np.float32),
    }


def test_similarities_go_from_the_start_to_the_first_end() -> None:
    found, kept = TASK.score(outcomes_of(["ab", "form"], ["ab", "from"]))
    assert (found["jaccard"], found["cosine"]) == (1.0, 1.0)  # order is ignored
    assert kept["dl"].tolist() == pytest.approx([1.0, 1 - 1 / 6])  # one swap in `<form>`
    assert found["dl"] == pytest.approx(1 - 1 / 12)
    assert found["loss"] == pytest.approx(0.5)
    assert found["cer"] == pytest.approx(2 / 6)
    assert found["wer"] == pytest.approx(1 / 2)
    assert kept.keys() == found.keys() == registry.TASKS["transcribe"].metrics.keys()


def test_a_transcript_that_does_not_end_has_no_end() -> None:
    found, _ = TASK.score(outcomes_of(["abc"], ["abcabcab"]))
    assert found["jaccard"] == pytest.approx(similarity.jaccard("<abc>", "<abcabcab"))
    assert found["dl"] == pytest.approx(similarity.damerau_levenshtein("<abc>", "<abcabcab"))
    assert found["cer"] == pytest.approx(5 / 3)


def test_the_same_letters_over_and_over_score_as_the_reports_found_for_the() -> None:
    """Jaccard and cosine see letters only: any text of the right letters is perfect, in whatever order."""
    found, _ = TASK.score(outcomes_of(["dcba abcd"], ["abcd dcba"], length=12))
    assert found["jaccard"] == found["cosine"] == 1.0
    assert found["dl"] < 0.6


class Sure(nn.Module):
    """A recogniser of great contrasts, so that what it writes ends here and there or never, and how often it wrote."""

    def __init__(self, design: str, seed: int) -> None:
        super().__init__()
        self.inner: Any = catalog.DESIGNS[design].network(Clips(mels=5, frames=6, length=98), {"width": 16}, seed)
        for name, parameter in self.inner.named_parameters():
            if name.startswith(("output.weight", "lstm")):
                parameter.data *= 9
        self.double().eval()
        self.steps = 0

    def forward(self, *given: Tensor) -> Any:
        return self.inner(*given)

    def encode(self, *given: Tensor) -> Any:
        return self.inner.encode(*given)

    def step(self, *given: Any) -> Any:
        self.steps += 1
        return self.inner.step(*given)


@pytest.mark.parametrize("options", [OPTIONS, REPORTED], ids=["audited", "as-reported"])
@pytest.mark.parametrize("design", ["speech-lstm", "speech-attention", "speech-taylor"])
def test_stopping_early_changes_no_outcome(
    design: str, options: dict[str, registry.Scalar], monkeypatch: pytest.MonkeyPatch
) -> None:
    split, lengths = doubled(options), set()
    for seed, beam in itertools.product((3, 9, 10), (1, 3)):
        task = TASK.with_options({**options, "frames": 6, "beam": beam})
        early, late = Sure(design, seed), Sure(design, seed)
        with torch.no_grad():
            found = task.outcomes(early, split)
            with monkeypatch.context() as patch:
                patch.setattr(decoding, "_all_ended", lambda ended, done: False)
                wanted = task.outcomes(late, split)
        assert late.steps == 98
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
        if beam == 1:
            assert early.steps == min(98, int(wanted["length"].max()) + 1)
            lengths |= set(wanted["length"].tolist())
    assert len(lengths) > 2, "the networks end at different steps"


def test_exhibits_are_what_reports_draw() -> None:
    torch.manual_seed(0)
    trained = SpeechAttention(Clips(mels=5, frames=6, length=98), 16).eval()
    shown = TASK.exhibits(trained, data(), OPTIONS, [0, 2])
    assert shown["curves"]["length_n"].sum() == 4
    assert shown["samples"]["input"].tolist() == ["a, 0.03 s", "c, 0.05 s"]
    assert shown["samples"]["reference"].tolist() == ["one", "t" * 97]
    assert shown["samples"]["heading"].tolist() == ["utterance", "transcript", "recognised"]
    assert "#" in str(TASK.exhibits(trained, data(), OPTIONS, [1])["samples"]["heading"][1]), "of the mark in Two!"
    for number, frames in enumerate((3, 5)):
        assert shown["attention"][f"picture_{number}"].shape == (5, frames)
        weights = shown["attention"][f"weights_{number}"]
        assert weights.shape == (len(shown["attention"][f"rows_{number}"]), -(-frames // 2))
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
    assert TASK.exhibits(trained, data(), OPTIONS, []).keys() == {"curves"}


def test_features_that_came_ready_made_cannot_be_used_on_sound(tmp_path: Path) -> None:
    vocabulary = TASK.with_options(OPTIONS).vocabulary(data())
    assert vocabulary == {"symbols": tuple(SYMBOLS)}
    known = TrainedOn(shape=TASK.with_options(OPTIONS).shape(data()), vocabulary=vocabulary, options=OPTIONS)
    with pytest.raises(TiebreakError, match="came ready-made"):
        TASK.answer(network(), str(tmp_path / "a.wav"), known, {"beam": 1})


# a study from sound files to `use`


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
        api.run(study, folder / "out", machine=Machine(data_dir=folder), listen=lambda message: None)
        yield folder / "out", folder / "speech"


def test_a_sound_file_is_heard_as_in_training(spoken: tuple[Path, Path]) -> None:
    out, speech = spoken
    result = api.open_result(out)
    task, options = TASK.with_options(OPTIONS), OPTIONS
    loaded = task.load("./speech", speech.parent)
    from tiebreak.tasks.audio_input import hear

    for index in range(5):
        heard = hear(speech / "test" / f"{index}.wav", result.plan.data.front_end)
        place = loaded.utterances["test"].index(f"test/{index}.wav")
        np.testing.assert_array_equal(heard.features, loaded.features("test", place).astype(np.float32))
        assert heard.note == ""
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


def test_the_clock_runs_while_the_sound_is_read(spoken: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    read = audio.read_audio

    def slowly(path: Path) -> audio.Sound:
        time.sleep(0.3)
        return read(path)

    monkeypatch.setattr(audio, "read_audio", slowly)
    note = use(spoken[0], str(spoken[1] / "test" / "0.wav")).reply.note
    assert float(note.rpartition("; ")[2].split()[0]) >= 0.3


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
    assert pace(spent, seconds) == told


@pytest.mark.parametrize("given", ["", "  "])
def test_no_file_at_all_is_said_so(spoken: tuple[Path, Path], given: str) -> None:
    with pytest.raises(TiebreakError, match=r"^no sound file was given; give the path of a WAV or FLAC file$"):
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
