"""Spoken numbers: number words to 9,999 said by eSpeak NG, for studies without a download.

| split | numbers                                           | voice variants         |
|-------|---------------------------------------------------|------------------------|
| train | 0 to 99, four times each; 600 and 2,000 larger    | 24                     |
| val   | 50 of three digits, 150 of four, none in training | 4 others               |
| test  | the same                                          | 6 others               |

All words occur in training, but no number and no voice variant is in two splits. An accent, a speed and a pitch
are drawn for every clip; speeds are such that the longest clip has about two seconds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple

import numpy as np

from tiebreak.data.fetch import find_source
from tiebreak.data.speech import espeak
from tiebreak.data.speech.espeak import Utterance
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.data.splits import SPLITS
from tiebreak.streams import stream

NAME = "spoken-numbers"
RATE = 16_000  # 100 frames a second; the synthesiser's 22,050 would make sequences longer, not clearer
ACCENTS = ("en-us", "en", "en-gb-x-rp", "en-gb-scotland")
VARIANTS: Mapping[str, tuple[str, ...]] = {  # none has `breath`, which is random
    "train": (
        *("m1", "m2", "m3", "m4", "m6", "m8", "f1", "Alex", "Andy", "Annie", "Denis", "Gene"),
        *("Lee", "Mario", "Michael", "adam", "aunty", "belinda", "boris", "david", "grandma", "john", "max", "pablo"),
    ),
    "val": ("m5", "linda", "robert", "Nguyen"),
    "test": ("m7", "f4", "Mike", "shelby", "norbert", "zac"),
}
SPEEDS = (215, 290)  # words a minute, lowest and highest
PITCHES = (30, 70)
REPEATS = 4  # of the numbers to 99
DRAWN: Mapping[str, tuple[int, int]] = {"train": (600, 2_000), "val": (50, 150), "test": (50, 150)}  # 3 and 4 digits

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen"),
    *("sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def number_words(number: int) -> str:
    """A number from 0 to 9,999 in words.

    >>> number_words(9_040), number_words(321), number_words(17)
    ('nine thousand forty', 'three hundred twenty-one', 'seventeen')
    """
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")
    size, unit = (1000, "thousand") if number >= 1000 else (100, "hundred")
    rest = f" {number_words(number % size)}" if number % size else ""
    return f"{ONES[number // size]} {unit}{rest}"


def spoken_numbers() -> dict[str, tuple[Utterance, ...]]:
    """The utterances of every split: always the same."""
    rng = np.random.Generator(np.random.Philox(stream(0, "spoken numbers")))
    hundreds, thousands = rng.permutation(np.arange(100, 1000)), rng.permutation(np.arange(1000, 10_000))
    spoken = {}
    for split in SPLITS:
        three, four = DRAWN[split]
        small = np.tile(np.arange(100), REPEATS) if split == "train" else np.arange(0)
        numbers = rng.permutation(np.concatenate([small, hundreds[:three], thousands[:four]]))
        hundreds, thousands = hundreds[three:], thousands[four:]
        spoken[split] = tuple(_utterance(int(number), split, rng) for number in numbers)
    return spoken


def _utterance(number: int, split: str, rng: np.random.Generator) -> Utterance:
    variant = VARIANTS[split][rng.integers(len(VARIANTS[split]))]
    voice = f"{ACCENTS[rng.integers(len(ACCENTS))]}+{variant}"
    speed, pitch = (int(rng.integers(low, high + 1)) for low, high in (SPEEDS, PITCHES))
    return Utterance(number_words(number), voice, speed, pitch)


def spoken_checksum(spoken: Mapping[str, tuple[Utterance, ...]]) -> str:
    """The sha256 of everything that determines the sound: texts, voices, order and version."""
    content = [[split, *map(astuple, spoken[split])] for split in SPLITS]
    return hashlib.sha256(json.dumps([espeak.version(), espeak.CHUNK, content]).encode()).hexdigest()


def load_numbers() -> SpeechData:
    """The data set spoken-numbers."""
    spoken, source = spoken_numbers(), find_source(NAME)
    return SpeechData(
        name=NAME,
        texts={split: tuple(utterance.text for utterance in spoken[split]) for split in SPLITS},
        utterances={
            split: tuple(f"{index} {utterance.voice}" for index, utterance in enumerate(spoken[split]))
            for split in SPLITS
        },
        clips=spoken,
        rate=RATE,
        synthetic=True,
        checksum=spoken_checksum(spoken),
        licence=source.licence,
        citation=source.citation,
        split_rule="by voice variant and number: none is in two splits",
        reading_notes=(f"spoken by eSpeak NG {espeak.version()}: synthetic speech, which is easier than recordings",),
    )
