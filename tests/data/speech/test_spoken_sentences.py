"""A user's own sentences, spoken."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tiebreak.data.speech import espeak
from tiebreak.data.speech.espeak import Utterance
from tiebreak.data.speech.speech_sets import checksum, load
from tiebreak.data.speech.spoken_sentences import LONGEST
from tiebreak.errors import TiebreakError

pytestmark = pytest.mark.usefixtures("empty_cache")

pytest.importorskip("espeakng_loader")


def write(folder: Path, *more: str, count: int = 10) -> str:
    """`count` different sentences, then what else is given."""
    path = folder / "said.txt"
    lines = [f"This is number {index}." for index in range(count)]
    path.write_text("".join(f"{line}\n" for line in (*lines, *more)), "utf-8")
    return str(path)


def refusal(name: str) -> str:
    lines = []
    for function in (checksum, load):
        with pytest.raises(TiebreakError) as caught:
            function(name)
        lines.append(str(caught.value))
    assert lines[0] == lines[1]
    assert lines[0].isprintable()
    return lines[0].removeprefix(name)


def test_sentences_are_spoken_split_and_kept(tmp_path: Path) -> None:
    name = write(tmp_path, count=20)
    calls: list[tuple[int, int]] = []
    data = load(name, progress=lambda *done: calls.append(done))
    assert data.sizes == {"train": 16, "val": 2, "test": 2}
    assert not calls
    assert data.lengths("train").min() > 50
    assert calls == [(20, 20)]
    for split in data.sizes:
        for called, text in zip(data.utterances[split], data.texts[split], strict=True):
            assert text == f"This is number {int(called.removeprefix('line ')) - 1}."
    assert data.clips["val"][0] == Utterance(data.texts["val"][0], "en-us", 175, 50)
    again = load(name, progress=lambda *_: pytest.fail("made again"))
    assert again.longest == data.longest
    assert data.checksum == checksum(name)


def test_it_says_that_it_is_synthetic(tmp_path: Path) -> None:
    data = load(write(tmp_path))
    assert (data.synthetic, data.official, data.split_rule) == (True, None, "80/10/10")
    assert data.description()[0].startswith(f"{data.name}: synthetic speech, 8 train, 1 val, 1 test; 80 features")
    assert data.notes[0].startswith(f"spoken by eSpeak NG {espeak.version()}, one voice: synthetic speech")
    assert "eSpeak NG" in data.licence
    assert "espeak-ng" in data.citation


def test_a_sentence_that_is_there_twice_is_spoken_once(tmp_path: Path) -> None:
    plain = load(write(tmp_path))
    data = load(write(tmp_path, "", "  this is  NUMBER 3.", " \t", "This is number 4."))
    assert data.texts == plain.texts
    assert data.checksum == plain.checksum
    assert data.notes[1].startswith("repeated sentences dropped")
    assert data.notes[1].endswith(": 2")


def test_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    path = Path(write(tmp_path))
    plain = checksum(str(path))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert checksum(str(path)) == plain
    assert checksum(str(path.rename(tmp_path / "moved.TXT"))) == plain


def test_the_checksum_sees_the_text_the_voice_and_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {checksum(write(tmp_path)), checksum(write(tmp_path, "One more."))}
    monkeypatch.setattr(espeak, "plain", lambda text: Utterance(text, "en-gb-x-rp", 175, 50))
    seen.add(checksum(write(tmp_path)))
    monkeypatch.setattr(espeak, "version", lambda: "2.0")
    seen.add(checksum(write(tmp_path)))
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("... -", "'... -' has no letter and no digit"),
        ("a" * (LONGEST + 1), "501 characters; at most 500"),
        ("louder \x015A now", "a control character, '\\x01', which cannot be spoken"),
        ("nothing \0 here", "a NUL byte"),
    ],
)
def test_a_line_that_cannot_be_spoken_is_named(tmp_path: Path, line: str, told: str) -> None:
    assert refusal(write(tmp_path, "", line)).startswith(f": line 12: {told}")


def test_files_that_hold_no_sentences(tmp_path: Path) -> None:
    assert "different sentences, one a line: 9, too few" in refusal(write(tmp_path, "This is number 1.", count=9))
    path = tmp_path / "bad.txt"
    path.write_text("\n \n")
    assert "different sentences, one a line: 0, too few" in refusal(str(path))
    path.write_bytes("Straße".encode("latin-1"))
    assert ": line 1: not UTF-8 text (byte 4)" in refusal(str(path))


def test_without_the_synthesiser_there_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert "espeakng-loader, which is not installed" in refusal(write(tmp_path))
