"""A user's own speech: a folder of WAV and FLAC files with `transcripts.tsv`, lines of file TAB text.

| layout                                          | splits                          |
|-------------------------------------------------|---------------------------------|
| FOLDER/{train,val,test}/transcripts.tsv + audio | as the folders say              |
| FOLDER/transcripts.tsv + audio                  | 80/10/10 by the stream "split"  |

Files are named relative to their transcripts.tsv and may lie in subfolders. Every file has one transcript, and every
transcript a file. Sound is resampled to 16 kHz, and features are normalised by the training clips.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from tiebreak.data.checksums import file_checksum
from tiebreak.data.left_out import left_out
from tiebreak.data.speech.audio import SUFFIXES
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.data.splits import SPLITS, Item, split_tenths
from tiebreak.errors import TiebreakError
from tiebreak.files import inside, read_text
from tiebreak.streams import stream
from tiebreak.text import printable

TABLE = "transcripts.tsv"
RATE = 16_000

Utterances = Sequence[tuple[Path, str]]  # files with their transcripts


def load_transcripts(root: Path, name: str) -> SpeechData:
    """The user's speech in a folder, listed and split; the sound itself is read when features are asked for."""
    splits, rule = _list(root)
    return SpeechData(
        name=name,
        cache_name="own",
        texts={split: tuple(text for _, text in splits[split]) for split in SPLITS},
        utterances={
            split: tuple(printable(path.relative_to(root).as_posix()) for path, _ in splits[split]) for split in SPLITS
        },
        clips={split: tuple(path for path, _ in splits[split]) for split in SPLITS},
        rate=RATE,
        checksum=_checksum(root, splits),
        split_rule=rule,
        reading_notes=left_out(root, _used(root, splits)),
    )


def _used(root: Path, splits: Mapping[str, Utterances]) -> set[Path]:
    """The files that are read: the clips and their tables."""
    tables = {root / TABLE, *(root / split / TABLE for split in SPLITS)}
    return tables | {path for split in SPLITS for path, _ in splits[split]}


def _list(root: Path) -> tuple[Mapping[str, Utterances], str]:
    if not root.is_dir():
        raise TiebreakError(f"{printable(root)}: {_no_folder(root)}")
    folders = {split: root / split for split in SPLITS if (root / split / TABLE).is_file()}
    if len(folders) == len(SPLITS) and not (root / TABLE).exists():
        return {split: read_transcripts(folder) for split, folder in folders.items()}, "as in the folders"
    if not (root / TABLE).is_file():
        raise TiebreakError(f"{printable(root)}: {_no_table(root, [split for split in SPLITS if split in folders])}")
    return split_utterances(read_transcripts(root), f"{printable(root / TABLE)}: utterances"), "80/10/10"


def split_utterances(items: Sequence[Item], what: str) -> dict[str, tuple[Item, ...]]:
    """A user's utterances split 80/10/10; `what` is for the message that there are too few."""
    return split_tenths(items, stream(0, "split", "speech"), what)


def _no_folder(path: Path) -> str:
    """What to do with a file in the place of a folder."""
    if path.name == TABLE:
        return f"name its folder instead: {printable(path.parent)}/"
    if path.suffix.lower() in SUFFIXES:
        return (
            f"a single sound; speech to train on is a folder with {TABLE} and audio (to transcribe one file with "
            "a trained network: `tiebreak use`)"
        )
    return f"not a folder; speech of your own is a folder with {TABLE} and audio, or a .txt file of sentences to speak"


def _no_table(root: Path, having: Sequence[str]) -> str:
    """What a folder without transcripts lacks; `having`: its splits that have some."""
    if having:
        lacking = ", ".join(split for split in SPLITS if split not in having)
        return f"{TABLE} is in {', '.join(having)} and not in {lacking}; all three need one, lines: file TAB text"
    if (root / "metadata.csv").is_file() and (root / "wavs").is_dir():
        return f"this is the layout of LJ Speech: name it ljspeech, with --data-dir {printable(root)}"
    return f"no {TABLE} in it, nor in each of train, val and test; lines: file TAB text"


def read_transcripts(folder: Path) -> list[tuple[Path, str]]:
    """The audio files of a folder with their texts, in the order of names; an error names the line or the file."""
    table = folder / TABLE
    found: dict[Path, str] = {}
    for number, line in enumerate(read_text(table).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"{printable(table)}: line {number}"
        name, tab, text = line.partition("\t")
        if not tab or not name.strip() or not text.strip():
            raise TiebreakError(f"{where}: expected a file, a TAB and its transcript")
        if "\t" in text.strip():
            raise TiebreakError(f"{where}: more than one TAB; expected a file, a TAB and its transcript")
        path = _file(where, folder, name.strip())
        if path in found:
            raise TiebreakError(f"{where}: {printable(name.strip())} occurs twice")
        found[path] = " ".join(text.split())
    if not found:
        raise TiebreakError(f"{printable(table)}: no transcript in it")
    without = sorted(set(_audio_files(folder)) - found.keys())
    if without:
        raise TiebreakError(
            f"{printable(without[0])}: no transcript for it in {printable(table)} ({len(without):,} in all); add a "
            "line, or remove the file"
        )
    return sorted(found.items())


def _file(where: str, folder: Path, name: str) -> Path:
    pure = PurePosixPath(name)
    try:
        path = inside(folder, *pure.parts, links=True)
    except TiebreakError:
        raise TiebreakError(f"{where}: {printable(name)} is not a file inside the folder") from None
    if pure.suffix.lower() not in SUFFIXES:
        raise TiebreakError(f"{where}: {printable(name)} is none of {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise TiebreakError(f"{where}: there is no audio file {printable(path)}")
    return path


def _audio_files(folder: Path) -> list[Path]:
    """All sound files below a folder; hidden ones are ignored."""
    found: list[Path] = []
    for place, inner, names in os.walk(folder):
        inner[:] = [name for name in inner if not name.startswith(".")]
        found += [Path(place, name) for name in names if name.lower().endswith(SUFFIXES) and not name.startswith(".")]
    return found


def _checksum(root: Path, splits: Mapping[str, Utterances]) -> str:
    """The sha256 of the clips' names, contents and transcripts by split, wherever the folder is."""
    hasher = hashlib.sha256()
    for split in SPLITS:
        for path, text in splits[split]:
            name = os.fsencode(path.relative_to(root).as_posix())
            hasher.update(b"\0".join([split.encode(), name, text.encode(), bytes.fromhex(file_checksum(path))]))
    return hasher.hexdigest()
