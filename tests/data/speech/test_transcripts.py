from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tiebreak.data.speech.speech_sets import checksum, load
from tiebreak.errors import TiebreakError

pytestmark = pytest.mark.usefixtures("empty_cache")

soundfile = pytest.importorskip("soundfile")


def fill(folder: Path, count: int) -> Path:
    """`count` clips, alternately WAV at 8 kHz and stereo FLAC at 44.1 kHz in a subfolder, with their transcripts."""
    (folder / "more").mkdir(parents=True)
    lines = []
    for index in range(count):
        name, rate, channels = (f"{index}.wav", 8_000, 1) if index % 2 else (f"more/{index}.flac", 44_100, 2)
        sound = np.random.default_rng(index).uniform(-0.3, 0.3, (rate // 10, channels))
        soundfile.write(folder / name, sound, rate)
        lines.append(f"{name}\tThis is  number {index}\n")
    (folder / "transcripts.tsv").write_text("".join(lines))
    return folder


def refusal(root: Path) -> str:
    lines = []
    for function in (checksum, load):
        with pytest.raises(TiebreakError) as caught:
            function(f"{root}/")
        lines.append(str(caught.value))
    assert lines[0] == lines[1]
    assert lines[0].isprintable()
    return lines[0].replace(str(root), ".")


def test_a_folder_is_split_80_10_10(tmp_path: Path) -> None:
    data = load(f"{fill(tmp_path / 'own', 20)}/")
    assert data.sizes == {"train": 16, "val": 2, "test": 2}
    assert data.split_rule == "80/10/10"
    everything = [name for split in data.sizes for name in data.utterances[split]]
    assert len(set(everything)) == 20
    for split in data.sizes:
        for name, text in zip(data.utterances[split], data.texts[split], strict=True):
            assert text == f"This is number {Path(name).stem}"
        assert data.lengths(split).tolist() == [10] * data.sizes[split]
    assert (data.official, data.licence, data.synthetic, data.mels) == (None, "", False, 80)
    np.testing.assert_allclose(data.bank.values[: data.lengths("train").sum()].astype(float).mean(axis=0), 0, atol=2e-3)


def test_folders_by_split_are_taken_as_they_are(tmp_path: Path) -> None:
    for split, count in (("train", 4), ("val", 2), ("test", 1)):
        fill(tmp_path / "own" / split, count)
    data = load(f"{tmp_path / 'own'}/")
    assert data.sizes == {"train": 4, "val": 2, "test": 1}
    assert data.utterances["val"] == ("val/1.wav", "val/more/0.flac")
    assert data.split_rule == "as in the folders"


def test_moving_the_folder_changes_nothing_and_changing_anything_does(tmp_path: Path) -> None:
    root = fill(tmp_path / "own", 12)
    shutil.copytree(root, tmp_path / "copy")
    (tmp_path / "copy" / ".hidden.wav").touch()
    (tmp_path / "copy" / "notes.txt").touch()
    first = load(f"{root}/")
    first.bank  # noqa: B018 - makes the features
    moved = load(f"{tmp_path / 'copy'}/", progress=lambda *_: pytest.fail("made again"))
    assert moved.checksum == first.checksum == checksum(f"{root}/")
    np.testing.assert_array_equal(moved.bank.values, first.bank.values)
    shutil.copy(root / "1.wav", root / "3.wav")
    second = checksum(f"{root}/")
    table = root / "transcripts.tsv"
    table.write_text(table.read_text().replace("number 5", "number five"))
    assert len({first.checksum, second, checksum(f"{root}/")}) == 3


def test_silence_and_unknown_characters_are_counted_and_told(tmp_path: Path) -> None:
    root = fill(tmp_path / "own", 10)
    soundfile.write(root / "1.wav", np.zeros(900), 8_000)
    table = root / "transcripts.tsv"
    table.write_text(table.read_text().replace("This is  number 3", "Straße 3!"), "utf-8")
    data = load(f"{root}/")
    assert list(data.notes) == [
        "characters of the transcripts that become #, being none of a to z, space and , . ? -: 12 ("
        "'!' 1, '0' 1, '1' 1, '2' 1, '3' 1, …)"
    ]
    assert data.longest == 11
    assert list(data.notes)[1:] == ["clips without any sound: 1, such as 1.wav"]
    assert data.description()[2:] == [f"  {note}" for note in data.notes]


def test_a_check_reads_all_sound_and_tells_what_is_cut(tmp_path: Path) -> None:
    root = fill(tmp_path / "own", 10)
    table = root / "transcripts.tsv"
    table.write_text(table.read_text().replace("This is  number 3", "a" * 98), "utf-8")
    assert "  transcripts of more than 97 characters, which end there: 1" in load(f"{root}/").description()
    (root / "7.wav").write_bytes(b"no sound")
    with pytest.raises(TiebreakError, match=r"7\.wav: no sound that can be read"):
        load(f"{root}/").description()


def test_a_transcript_without_audio(tmp_path: Path) -> None:
    root = fill(tmp_path / "own", 10)
    (root / "3.wav").unlink()
    assert refusal(root).startswith("./transcripts.tsv: line 4: there is no audio file ./3.wav")


def test_audio_without_a_transcript(tmp_path: Path) -> None:
    root = fill(tmp_path / "own", 10)
    shutil.copy(root / "3.wav", root / "x.WAV")
    assert refusal(root).startswith("./x.WAV: no transcript for it in ./transcripts.tsv (1 in all)")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("3.wav hello", "expected a file, a TAB"),
        ("3.wav\t ", "expected a file, a TAB"),
        ("3.wav\thello\tme", "more than one TAB"),
        ("3.wav\thello again", "3.wav occurs twice"),
        ("../3.wav\thello", "../3.wav is not a file inside the folder"),
        ("/3.wav\thello", "/3.wav is not a file inside the folder"),
        ("3.mp3\thello", "3.mp3 is none of .wav, .flac"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(tmp_path: Path, line: str, told: str) -> None:
    root = fill(tmp_path / "own", 10)
    with (root / "transcripts.tsv").open("a") as file:
        file.write(f"\n{line}\n")
    assert refusal(root).startswith(f"./transcripts.tsv: line 12: {told}")


def test_folders_that_are_no_speech(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    assert refusal(tmp_path / "own").startswith(".: no transcripts.tsv in it, nor in each of train, val and test")
    (tmp_path / "own" / "val").mkdir()
    (tmp_path / "own" / "val" / "transcripts.tsv").touch()
    assert refusal(tmp_path / "own").startswith(".: transcripts.tsv is in val and not in train, test")
    (tmp_path / "own" / "transcripts.tsv").write_text("\n\n")
    assert refusal(tmp_path / "own").startswith("./transcripts.tsv: no transcript in it")
    (tmp_path / "own" / "transcripts.tsv").write_bytes(b"\xff\xfe")
    assert "not UTF-8 text" in refusal(tmp_path / "own")
    assert "./transcripts.tsv: utterances: 9, too few to be split" in refusal(fill(tmp_path / "few", 9))


def test_the_layout_of_lj_speech_has_a_name(tmp_path: Path) -> None:
    (tmp_path / "own" / "wavs").mkdir(parents=True)
    (tmp_path / "own" / "metadata.csv").touch()
    assert refusal(tmp_path / "own").startswith(
        ".: this is the layout of LJ Speech: name it ljspeech, with --data-dir ."
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("transcripts.tsv", "/transcripts.tsv: name its folder instead: "),
        ("one.WAV", "/one.WAV: a single sound; speech to train on is a folder with transcripts.tsv"),
        ("one.md", "/one.md: not a folder; speech of your own is a folder with transcripts.tsv and audio, or a .txt"),
    ],
)
def test_a_file_in_the_place_of_a_folder(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(TiebreakError) as caught:
        load(str(tmp_path / name))
    assert str(caught.value).startswith(f"{tmp_path}{told}")


def test_a_bad_clip_is_named_when_features_are_made(tmp_path: Path) -> None:
    root = fill(tmp_path / "own", 10)
    (root / "3.wav").write_bytes(b"")
    data = load(f"{root}/")
    with pytest.raises(TiebreakError, match=r"3\.wav: an empty file"):
        data.lengths("train")
