"""Speech from text by eSpeak NG, the same bytes every time.

The library's samples depend on everything that its process spoke before, and on nothing else. So the work is cut into
chunks of a fixed size, whatever the number of workers, and a new process speaks each chunk in order. (Voice
variants with `breath`, such as f2, f3 and f5, are random even so and must not be used.)
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import subprocess
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tiebreak.errors import TiebreakError
from tiebreak.system import python

RATE = 22_050
CHUNK = 50  # utterances of one process; another number gives other samples


@dataclass(frozen=True)
class Utterance:
    """What is said and how: a voice such as en-us or en-us+m3, words a minute, pitch from 0 to 99."""

    text: str
    voice: str
    speed: int
    pitch: int


def plain(text: str) -> Utterance:
    """The text in one American voice, at eSpeak NG's default speed and pitch."""
    return Utterance(text, "en-us", 175, 50)


def version() -> str:
    """The version of the eSpeak NG that is installed, such as 1.52.0."""
    library = ctypes.CDLL(str(_library()))
    library.espeak_Info.restype = ctypes.c_char_p
    answer: bytes = library.espeak_Info(None)
    return answer.decode().split()[0]


def speak_chunk(chunk: Sequence[Utterance]) -> list[NDArray[np.int16]]:
    """The samples of a few utterances, spoken one after the other by a process of their own."""
    _library()
    done = subprocess.run(
        python("tiebreak.data.speech.espeak_process"),
        input=json.dumps([astuple(utterance) for utterance in chunk]).encode(),
        capture_output=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"ended with code {done.returncode}"]
        raise TiebreakError(f"speech synthesis: {lines[-1]}")
    sounds, place = [], 0
    for utterance in chunk:
        count = int(np.frombuffer(done.stdout, "<u4", 1, place)[0])
        sound = np.frombuffer(done.stdout, "<i2", count, place + 4).astype(np.int16)
        if not sound.any():
            raise TiebreakError(f"speech synthesis: eSpeak NG has no sound for {utterance.text!r}: leave it out")
        sounds.append(sound)
        place += 4 + 2 * count
    return sounds


def _library() -> Path:
    """The shared library in the installed package, which is not imported for it."""
    spec = importlib.util.find_spec("espeakng_loader")
    folders = (spec.submodule_search_locations if spec else None) or []
    names = ("libespeak-ng.so", "libespeak-ng.dylib", "espeak-ng.dll")
    found = next((path for folder in folders for name in names if (path := Path(folder) / name).is_file()), None)
    if found is None:
        raise TiebreakError(
            "spoken data needs the package espeakng-loader, which is not installed; `pip install 'tiebreak[speech]'`"
        )
    return found
