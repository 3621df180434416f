"""A user's own sentences, spoken by eSpeak NG: a .txt file, UTF-8, a sentence on every line. Empty lines are skipped.

A repeated sentence is spoken once: otherwise it could be in training and test. Case is ignored, since transcripts are
lower case. The rest is as with a user's own recordings: 80/10/10 by the same rule,
16 kHz, features normalised by the training clips.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path
from string import digits

from tiebreak.data.sources import SPOKEN
from tiebreak.data.speech import espeak
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.data.speech.spoken_numbers import spoken_checksum
from tiebreak.data.speech.transcripts import RATE, split_utterances
from tiebreak.data.splits import SPLITS
from tiebreak.errors import TiebreakError
from tiebreak.files import read_text
from tiebreak.text import printable

SUFFIX = ".txt"
LIMIT_BYTES = 64 << 20  # of the file; the 13,100 sentences of LJ Speech have 1.3 MB
LONGEST = 500  # characters of a sentence, which take half a minute to say; all clips are padded to the longest

Line = tuple[int, str]  # its number in the file, and the sentence


def load_sentences(path: Path, name: str) -> SpeechData:
    """The sentences of a file, split; they are spoken when features are asked for."""
    lines = _read(path)
    once = {text.lower(): (number, text) for number, text in reversed(lines)}  # the first of each stays
    splits = split_utterances(sorted(once.values()), f"{printable(path)}: different sentences, one a line")
    clips = {split: tuple(espeak.plain(text) for _, text in splits[split]) for split in SPLITS}
    notes = [f"spoken by eSpeak NG {espeak.version()}, one voice: synthetic speech, which is easier than recordings"]
    if again := len(lines) - len(once):
        notes.append(f"repeated sentences dropped (same but for case and blanks): {again:,}")
    return SpeechData(
        name=name,
        cache_name="own",
        texts={split: tuple(text for _, text in splits[split]) for split in SPLITS},
        utterances={split: tuple(f"line {number}" for number, _ in splits[split]) for split in SPLITS},
        clips=clips,
        rate=RATE,
        synthetic=True,
        checksum=spoken_checksum(clips),
        licence=f"sentences: your own; {SPOKEN.licence}",
        citation=SPOKEN.citation,
        split_rule="80/10/10",
        reading_notes=tuple(notes),
    )


def _read(path: Path) -> list[Line]:
    lines = enumerate(read_text(path, LIMIT_BYTES).split("\n"), start=1)
    found = [(number, " ".join(line.split())) for number, line in lines if line.strip()]
    for number, text in found:
        if wrong := _wrong(text):
            raise TiebreakError(f"{printable(path)}: line {number}: {wrong}")
    return found


def _wrong(text: str) -> str:
    """What is wrong with a sentence; nothing where nothing is."""
    if len(text) > LONGEST:
        return f"{len(text):,} characters; at most {LONGEST} are spoken as one clip: write one sentence a line"
    for character in text:
        if unicodedata.category(character) == "Cc":  # eSpeak NG would take some for commands
            return f"a control character, {character!a}, which cannot be spoken: remove it"
    if not any(character.isalpha() or character in digits for character in text):
        return f"{printable(text)!r} has no letter and no digit, so there is nothing to speak: remove the line"
    return ""
