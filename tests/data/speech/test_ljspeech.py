from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from support.real_data import need
from tiebreak.data.speech import ljspeech
from tiebreak.data.speech.mel import log_mel
from tiebreak.data.speech.speech_sets import checksum, load
from tiebreak.errors import TiebreakError

pytestmark = pytest.mark.usefixtures("empty_cache")

soundfile = pytest.importorskip("soundfile")


def table(count: int) -> str:
    """`count` lines; in 40 of them 70 digits and an ö have no symbol."""
    ends = ["ö" if index == 1 else "o" for index in range(count)]
    return "".join(f"LJ001-{index:04}|No. {index}|Number {index}, {end}.\n" for index, end in enumerate(ends))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty clips of noise in the layout of LJSpeech-1.1."""
    root = tmp_path / "data" / "LJSpeech-1.1"
    (root / "wavs").mkdir(parents=True)
    (root / "metadata.csv").write_text(table(40), "utf-8")
    for index in range(40):
        sound = np.random.default_rng(index).uniform(-0.3, 0.3, 1000 + 160 * index)
        soundfile.write(root / "wavs" / f"LJ001-{index:04}.wav", sound, 22_050)
    return root


def test_the_split_is_that_of_the_reports() -> None:
    splits = ljspeech.by_index(tuple(range(13_100)))
    assert [(part[0], part[-1] + 1) for part in splits.values()] == [(0, 9825), (9825, 10480), (10480, 13100)]


def test_clips_and_transcripts_in_the_layout_of_the_archive(folder: Path) -> None:
    data = load("ljspeech", folder.parent)
    assert data.sizes == {"train": 30, "val": 2, "test": 8}
    assert data.texts["val"] == ("Number 30, o.", "Number 31, o.")
    assert data.utterances["test"][0] == "LJ001-0032"
    samples, _ = soundfile.read(folder / "wavs" / "LJ001-0031.wav", dtype="float32")
    np.testing.assert_allclose(data.features("val", 1), log_mel(samples, 22_050), atol=1e-3)
    assert data.longest == (1000 + 160 * 39) // 160
    assert data.seconds_per_frame == 160 / 22_050
    assert (data.synthetic, data.licence) == (False, "public domain")
    assert any("become #, being none of a to z, space and , . ? -: 71 ('1' 14, " in note for note in data.notes)
    assert data.checksum == checksum("ljspeech", folder.parent)


def test_the_files_that_are_found_and_those_with_a_published_checksum(tmp_path: Path) -> None:
    root = tmp_path / "data"
    (root / "ljspeech" / "wavs").mkdir(parents=True)
    with pytest.raises(TiebreakError, match="not found"):
        ljspeech.locate("ljspeech", root)
    (root / ljspeech.ARCHIVE).touch()  # fetched, not yet unpacked
    assert ljspeech.locate("ljspeech", root) == {ljspeech.ARCHIVE: root / ljspeech.ARCHIVE}
    (root / "metadata_13100.csv.gz").write_bytes(b"")
    assert not ljspeech.verify("spoken-ljspeech", root)["metadata_13100.csv.gz"].official
    (root / "ljspeech" / "metadata.csv").touch()
    assert ljspeech.locate("ljspeech", root) == {"ljspeech": root / "ljspeech"}
    assert ljspeech.locate("spoken-ljspeech", root) == {"metadata.csv": root / "ljspeech" / "metadata.csv"}
    assert ljspeech.verify("spoken-ljspeech", root) == {}  # no checksum of the unpacked table is published
    assert not ljspeech.verify("ljspeech", root)[ljspeech.ARCHIVE].official
    (root / ljspeech.ARCHIVE).unlink()
    assert ljspeech.verify("ljspeech", root) == {}


def test_both_kinds_of_filters_can_be_had(folder: Path) -> None:
    data = load("ljspeech", folder.parent)
    reported = data.with_filters(16_000)
    samples, _ = soundfile.read(folder / "wavs" / "LJ001-0000.wav", dtype="float32")
    expected = log_mel(samples, 22_050, filter_rate=16_000)
    np.testing.assert_allclose(reported.features("train", 0), expected, atol=1e-3)
    np.testing.assert_allclose(data.features("train", 0), log_mel(samples, 22_050), atol=1e-3)
    assert np.abs(reported.features("train", 0) - data.features("train", 0)).max() > 0.1
    assert "filters for 16,000 Hz" in reported.description()[0]
    assert reported.checksum == data.checksum
    assert "filters for" not in reported.with_filters(None).description()[0]


def refusal(folder: Path, name: str = "ljspeech") -> str:
    with pytest.raises(TiebreakError) as caught:
        load(name, folder)
    return str(caught.value).replace(str(folder), ".")


def test_transcripts_without_audio_and_audio_without_transcripts(folder: Path) -> None:
    (folder / "wavs" / "LJ001-0003.wav").rename(folder / "wavs" / "LJ001-9999.wav")
    assert refusal(folder).startswith("./wavs: LJ001-0003.wav is missing")
    (folder / "metadata.csv").write_text(table(40).replace("LJ001-0003", "LJ001-9999").replace("LJ001-0004|", "x|"))
    (folder / "wavs" / "x.wav").touch()
    assert refusal(folder).startswith("./wavs: LJ001-0004.wav has no transcript in metadata.csv (1 in all)")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (table(40) + "a|b\n", "line 41: expected id|text|normalised text"),
        (table(40) + "a|b| \n", "line 41: expected id|text|normalised text"),
        (table(40) + "LJ001-0003|b|c\n", "line 41: LJ001-0003 occurs twice"),
        (table(40) + "../x|b|c\n", "line 41: '../x' is not the name of a clip"),
        (table(19), "19 lines; at least 20 are needed for the split by index"),
    ],
)
def test_a_table_that_makes_no_sense(folder: Path, content: str, line: str) -> None:
    (folder / "metadata.csv").write_text(content, "utf-8")
    assert refusal(folder).startswith(f"./metadata.csv: {line}")


def test_what_is_not_here_is_told_with_advice(tmp_path: Path) -> None:
    assert refusal(tmp_path).startswith("ljspeech: metadata.csv and wavs not found in .")
    (tmp_path / ljspeech.ARCHIVE).touch()
    assert refusal(tmp_path).startswith("./LJSpeech-1.1.tar.bz2: unpack it there first: `tar xjf LJSpeech-1.1.tar.bz2`")
    assert "metadata.csv or metadata_13100.csv.gz not found" in refusal(tmp_path, "spoken-ljspeech")


def test_a_damaged_gzip_is_one_clear_line(tmp_path: Path) -> None:
    packed = gzip.compress(table(40).encode())
    (tmp_path / "metadata_13100.csv.gz").write_bytes(packed[:-20])
    assert refusal(tmp_path, "spoken-ljspeech").startswith("./metadata_13100.csv.gz: damaged gzip file (")


def test_transcripts_are_spoken_where_there_is_no_audio(tmp_path: Path) -> None:
    pytest.importorskip("espeakng_loader")
    (tmp_path / "metadata_13100.csv.gz").write_bytes(gzip.compress(table(20).encode()))
    data = load("spoken-ljspeech", tmp_path)
    assert data.sizes == {"train": 15, "val": 1, "test": 4}
    assert data.lengths("train").min() > 50
    assert (data.synthetic, data.official) == (True, False)
    assert "synthetic speech" in data.description()[0]
    (tmp_path / "metadata_13100.csv.gz").unlink()
    (tmp_path / "metadata.csv").write_text(table(20), "utf-8")
    assert load("spoken-ljspeech", tmp_path).checksum == data.checksum
    (tmp_path / "metadata.csv").write_text(table(21), "utf-8")
    assert checksum("spoken-ljspeech", tmp_path) != data.checksum


def test_the_real_transcripts() -> None:
    pytest.importorskip("espeakng_loader")
    data = load("spoken-ljspeech", need("ljspeech"))
    assert data.sizes == {"train": 9825, "val": 655, "test": 2620}
    assert data.official is True
    assert data.texts["train"][1] == "in being comparatively modern."
