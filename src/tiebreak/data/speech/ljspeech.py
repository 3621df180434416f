"""LJ Speech, one reader's 13,100 clips; and its transcripts spoken by eSpeak NG, for those without the audio.

| data set        | needs                                                                  |
|-----------------|------------------------------------------------------------------------|
| ljspeech        | metadata.csv (id|raw|normalised) and wavs/ID.wav: LJSpeech-1.1 unpacked |
| spoken-ljspeech | metadata.csv or metadata_13100.csv.gz, and espeakng-loader             |

The normalised transcripts are used. Split by index, as in the reports: the first 75 % train, the next 5 % validation,
the rest test (of 13,100: 9,825 / 655 / 2,620). Features are not normalised, as in the reports.
Addresses, sha256 and licences: `sources.SOURCES`.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tiebreak.data import fetch
from tiebreak.data.checksums import file_checksum
from tiebreak.data.fetch import Checked, find_source, search_path
from tiebreak.data.speech import espeak
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.data.speech.spoken_numbers import spoken_checksum
from tiebreak.errors import TiebreakError
from tiebreak.files import is_file, read_text

Item = TypeVar("Item")

NAME, SPOKEN = "ljspeech", "spoken-ljspeech"
FOLDERS = ("ljspeech", "LJSpeech-1.1", "ljspeech/LJSpeech-1.1", "spoken-ljspeech", ".")
ARCHIVE = "LJSpeech-1.1.tar.bz2"
TABLES = ("metadata.csv", "metadata_13100.csv.gz")
RATE = 22_050
LIMIT_BYTES = 64 << 20  # of an unpacked table; the real one has 3 MB
LEAST = 20  # lines of a table: 5 % of them are one


@dataclass(frozen=True, kw_only=True)
class Table:
    """The transcripts in order, and the file that they came from."""

    path: Path
    ids: tuple[str, ...]
    texts: tuple[str, ...]


def locate(name: str, data_dir: Path | None = None) -> dict[str, Path]:
    """The files of one of the two data sets: what is read, or a fetched archive that has yet to be unpacked."""
    if name == SPOKEN:
        table = find_table(data_dir)
        return {table.name: table}
    with suppress(TiebreakError):
        folder = find_clips(data_dir)
        return {folder.name: folder}
    return fetch.locate(name, data_dir)


def verify(name: str, data_dir: Path | None = None) -> dict[str, Checked]:
    """Those files that have a published checksum, compared with it: there is none of what the archive unpacks to."""
    if name == SPOKEN:
        published = {file.filename: file for file in find_source(name).files}
        found = locate(name, data_dir)
        return {file: fetch.compare(path, published[file]) for file, path in found.items() if file in published}
    try:
        fetch.locate(name, data_dir)
    except TiebreakError:  # the archive may have been removed after unpacking
        return {}
    return fetch.verify(name, data_dir)


def load_ljspeech(data_dir: Path | None = None) -> SpeechData:
    """LJ Speech."""
    folder = find_clips(data_dir)
    table = read_table(folder / TABLES[0])
    sizes = _sizes_of_clips(folder / "wavs")
    missing = [name for name in table.ids if name not in sizes]
    if missing:
        raise TiebreakError(
            f"{folder / 'wavs'}: {missing[0]}.wav is missing; of {len(table.ids):,} transcripts {len(missing):,} have "
            "no audio: unpack the archive again"
        )
    if extra := sorted(sizes.keys() - set(table.ids)):
        raise TiebreakError(
            f"{folder / 'wavs'}: {extra[0]}.wav has no transcript in {TABLES[0]} ({len(extra):,} in all); add it, "
            "or remove the file"
        )
    source = find_source(NAME)
    listed = "".join(f"{name} {sizes[name]}\n" for name in table.ids)
    return SpeechData(
        name=NAME,
        texts=by_index(table.texts),
        utterances=by_index(table.ids),
        clips=by_index(tuple(folder / "wavs" / f"{name}.wav" for name in table.ids)),
        rate=RATE,
        normalised=False,
        checksum=hashlib.sha256("\n".join([*table.texts, listed]).encode()).hexdigest(),
        licence=source.licence,
        citation=source.citation,
        split_rule="by index, as in the reports: 75 %, 5 %, 20 %",
        reading_notes=("its checksum is that of the transcripts and of the sizes of the clips",),
    )


def load_spoken(data_dir: Path | None = None) -> SpeechData:
    """The transcripts of LJ Speech spoken by eSpeak NG."""
    path = find_table(data_dir)
    table = read_table(path)
    clips = by_index(tuple(espeak.plain(text) for text in table.texts))
    source = find_source(SPOKEN)
    known = [file.checksum for file in source.files if file.filename == path.name]
    return SpeechData(
        name=SPOKEN,
        texts=by_index(table.texts),
        utterances=by_index(table.ids),
        clips=clips,
        rate=RATE,
        normalised=False,
        synthetic=True,
        checksum=spoken_checksum(clips),
        official=f"sha256:{file_checksum(path)}" in known if known else None,
        licence=source.licence,
        citation=source.citation,
        split_rule="by index, as in the reports: 75 %, 5 %, 20 %",
        reading_notes=(
            f"spoken by eSpeak NG {espeak.version()}, one voice: synthetic speech, not the recordings of the reports",
        ),
    )


def by_index(items: tuple[Item, ...]) -> dict[str, tuple[Item, ...]]:
    """Train, val and test in the order of the table."""
    first, second = len(items) * 75 // 100, len(items) * 80 // 100
    return {"train": items[:first], "val": items[first:second], "test": items[second:]}


def read_table(path: Path) -> Table:
    """The lines `id|raw|normalised` of a metadata file, plain or gzipped; an error names the line."""
    ids: dict[str, str] = {}
    lines = read_text(path, LIMIT_BYTES).removesuffix("\n").split("\n")
    for number, line in enumerate(lines, start=1):
        name, *texts = line.split("|")
        if len(texts) != 2 or not name or not texts[1].strip():
            raise TiebreakError(f"{path}: line {number}: expected id|text|normalised text")
        if name in ids:
            raise TiebreakError(f"{path}: line {number}: {name} occurs twice")
        if "/" in name or "\0" in line:
            raise TiebreakError(f"{path}: line {number}: {name!r} is not the name of a clip")
        ids[name] = texts[1].strip()
    if len(ids) < LEAST:
        raise TiebreakError(f"{path}: {len(ids)} lines; at least {LEAST} are needed for the split by index")
    return Table(path=path, ids=tuple(ids), texts=tuple(ids.values()))


def _places(data_dir: Path | None) -> list[Path]:
    return [folder / name for folder in search_path(data_dir) for name in FOLDERS]


def find_clips(data_dir: Path | None = None) -> Path:
    """The folder that ljspeech is read from: the first with metadata.csv and wavs."""
    places = _places(data_dir)
    for place in places:
        if is_file(place / TABLES[0]) and (place / "wavs").is_dir():
            return place
    for place in places:
        if is_file(place / ARCHIVE):
            raise TiebreakError(f"{place / ARCHIVE}: unpack it there first: `tar xjf {ARCHIVE}`")
    raise TiebreakError(
        f"{NAME}: metadata.csv and wavs not found in {', '.join(map(str, search_path(data_dir)))}; get it with "
        f"`tiebreak data fetch {NAME}` (2.6 GB), name its folder with --data-dir, or use {SPOKEN}, which needs the "
        "transcripts only"
    )


def find_table(data_dir: Path | None = None) -> Path:
    """The file that spoken-ljspeech is read from: the first of either name."""
    found = next((path for place in _places(data_dir) for name in TABLES if is_file(path := place / name)), None)
    if found is None:
        raise TiebreakError(
            f"{SPOKEN}: {' or '.join(TABLES)} not found in {', '.join(map(str, search_path(data_dir)))}; it is in the "
            f"archive of {NAME}: `tiebreak data fetch {NAME}`, or name its folder with --data-dir"
        )
    return found


def _sizes_of_clips(folder: Path) -> dict[str, int]:
    try:
        with os.scandir(folder) as entries:
            return {
                entry.name.removesuffix(".wav"): entry.stat().st_size
                for entry in entries
                if entry.name.endswith(".wav")
            }
    except OSError as error:
        raise TiebreakError(f"{folder}: cannot be read: {error.strerror}") from None
