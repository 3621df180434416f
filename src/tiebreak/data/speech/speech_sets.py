"""Speech data sets by name: utterances by split, with log-mel features that are made when first used.

| data set        | what it needs                               | splits: train / val / test | rate   |
|-----------------|---------------------------------------------|----------------------------|--------|
| spoken-numbers  | espeakng-loader: embedded, synthetic        | 3,000 / 200 / 200          | 16 kHz |
| an4             | an4_mfcc13.npz: real speech, 13 cepstra     | 843 / 105 / 130            | 16 kHz |
| ljspeech        | LJSpeech-1.1 unpacked                       | 9,825 / 655 / 2,620        | 22 kHz |
| spoken-ljspeech | its transcripts, espeakng-loader: synthetic | 9,825 / 655 / 2,620        | 22 kHz |
| a folder        | see transcripts.py: a user's recordings     | as given, or 80/10/10      | 16 kHz |
| a .txt file     | see spoken_sentences.py: synthetic          | 80/10/10                   | 16 kHz |

`load(...).with_filters(16000)` gives the features of the reports, whose mel filters were made for 16 kHz.
Addresses, sha256 and licences: `sources.SOURCES`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tiebreak.data.load_progress import LoadProgress
from tiebreak.data.speech import spoken_sentences
from tiebreak.data.speech.an4 import an4_checksum, load_an4
from tiebreak.data.speech.feature_cache import Progress
from tiebreak.data.speech.ljspeech import load_ljspeech, load_spoken
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.data.speech.spoken_numbers import load_numbers
from tiebreak.data.speech.transcripts import load_transcripts
from tiebreak.data.user_paths import find_user_path
from tiebreak.errors import TiebreakError, nearest
from tiebreak.study.registry import OWN_DATA, is_path
from tiebreak.text import printable

NAMES = ("spoken-numbers", "an4", "ljspeech", "spoken-ljspeech")


def load(name: str, data_dir: Path | None = None, *, progress: Progress | None = None) -> SpeechData:
    """The speech data set called `name`, or the user's own at the path `name`.

    `progress` is called with the number of clips done while features are made; None: lines on standard error.
    """
    report = progress or LoadProgress(f"{printable(name)}: making features, kept for the next time; clips done")
    return replace(_load(name, data_dir), progress=report)


def _load(name: str, data_dir: Path | None) -> SpeechData:
    if is_path(name):
        path = find_user_path(name, data_dir)
        is_text = path.suffix.lower() == spoken_sentences.SUFFIX and path.is_file()
        return spoken_sentences.load_sentences(path, name) if is_text else load_transcripts(path, name)
    if name == "spoken-numbers":
        return load_numbers()
    if name == "an4":
        return load_an4(data_dir)
    if name == "ljspeech":
        return load_ljspeech(data_dir)
    if name == "spoken-ljspeech":
        return load_spoken(data_dir)
    raise TiebreakError(f"no speech data set is called {name!r}; {nearest(name, NAMES)} ({OWN_DATA})")


def checksum(name: str, data_dir: Path | None = None) -> str:
    """The checksum that `load` would give; nothing is synthesised, and no sound is decoded."""
    return an4_checksum(data_dir) if name == "an4" else _load(name, data_dir).checksum
