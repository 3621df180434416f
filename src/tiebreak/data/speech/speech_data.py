"""A speech data set: utterances by split, and the features of every clip, made or opened when first used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.speech import alphabet
from tiebreak.data.speech.feature_cache import Bank, Clip, Progress, Recipe, open_bank
from tiebreak.data.speech.front_end import FrontEnd
from tiebreak.data.speech.mel import HOP, MELS
from tiebreak.data.splits import SPLITS
from tiebreak.errors import TiebreakError
from tiebreak.text import printable

SYNTHETIC = "synthetic speech"
SHOWN = 5  # characters without a symbol that are named
MOST = alphabet.LENGTH - 2  # characters of a transcript


@dataclass(frozen=True, kw_only=True, eq=False)
class SpeechData:
    """Utterances by split. `official` None: no checksum is published to compare its `checksum` with.

    Nothing is read or synthesised before features are asked for: `bank`, and what is computed from it.
    """

    name: str
    texts: Mapping[str, tuple[str, ...]]
    utterances: Mapping[str, tuple[str, ...]]  # what each is called
    clips: Mapping[str, tuple[Clip, ...]] = field(default_factory=dict)  # none: `ready` holds their features
    ready: Bank | None = None  # of the splits one after the other
    rate: int  # samples a second, of which a frame has 160
    filter_rate: int | None = None  # for which the mel filters are made; None: `rate`
    mels: int = MELS
    normalised: bool = True
    synthetic: bool = False
    checksum: str
    official: bool | None = None
    licence: str = ""
    citation: str = ""
    split_rule: str = "as published"
    reading_notes: tuple[str, ...] = ()  # what was noticed while the list of utterances was read
    cache_name: str = ""  # in the names of its cache files; none: `name`
    progress: Progress | None = None

    def with_filters(self, rate: int | None) -> SpeechData:
        """The same data seen through mel filters that are made for another rate; None: for its own."""
        if not self.clips:
            raise TiebreakError(f"{printable(self.name)} comes as features: its filters cannot be changed")
        return replace(self, filter_rate=rate)

    @cached_property
    def bank(self) -> Bank:
        """The features of all clips, from the cache or made now."""
        if self.ready is not None:
            return self.ready
        recipe = Recipe(
            name=self.cache_name or self.name,
            checksum=self.checksum,
            rate=self.rate,
            filter_rate=self.filter_rate or self.rate,
            normalised=self.normalised,
            mels=self.mels,
        )
        clips = [clip for split in SPLITS for clip in self.clips[split]]
        return open_bank(recipe, clips, self.sizes["train"], self.progress)

    @property
    def front_end(self) -> FrontEnd | None:
        """How its sound became features; None: the features came ready-made."""
        if not self.clips:
            return None
        return FrontEnd(
            rate=self.rate,
            filter_rate=self.filter_rate or self.rate,
            mels=self.mels,
            mean=self.bank.mean,
            deviation=self.bank.deviation,
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The number of utterances of each split."""
        return {split: len(self.texts[split]) for split in SPLITS}

    @property
    def seconds_per_frame(self) -> float:
        """How far apart frames are."""
        return HOP / self.rate

    def lengths(self, split: str) -> NDArray[np.int64]:
        """The number of frames of each utterance of a split: [N]."""
        return np.diff(self._offsets(split))

    @property
    def longest(self) -> int:
        """The number of frames of the longest utterance of all."""
        return int(np.diff(self.bank.offsets).max())

    def features(self, split: str, index: int) -> NDArray[np.float16]:
        """The features of one utterance: [frames, mels], memory-mapped."""
        offsets = self._offsets(split)
        return self.bank.values[offsets[index] : offsets[index + 1]]

    def padded(
        self, split: str, frames: int | None = None, indices: Sequence[int] | NDArray[np.int64] | None = None
    ) -> NDArray[np.float16]:
        """Utterances of a split [N, frames, mels], cut or followed by zeros; `frames` None: none of the data is cut."""
        chosen = range(self.sizes[split]) if indices is None else indices
        length = self.longest if frames is None else frames
        padded = np.zeros((len(chosen), length, self.mels), np.float16)
        for row, index in zip(padded, chosen, strict=True):
            values = self.features(split, int(index))[:length]
            row[: len(values)] = values
        return padded

    @property
    def notes(self) -> tuple[str, ...]:
        """What is unusual about the transcripts, in lines; once the features are open, about the sound too."""
        notes = list(self.reading_notes)
        texts = [text for split in SPLITS for text in self.texts[split]]
        if others := alphabet.others(texts):
            first = sorted(others.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
            most = ", ".join(f"{printable(character)!r} {count:,}" for character, count in first)
            notes.append(
                f"characters of the transcripts that become #, being none of a to z, space and , . ? -: "
                f"{others.total():,} ({most}{', …' if len(others) > SHOWN else ''})"
            )
        if long := sum(len(text) > MOST for text in texts):
            notes.append(f"transcripts of more than {MOST} characters, which end there: {long:,}")
        if "bank" in self.__dict__:
            names = [name for split in SPLITS for name in self.utterances[split]]
            if silent := self.bank.silent:
                notes.append(f"clips without any sound: {len(silent):,}, such as {printable(names[silent[0]])}")
            notes += self.bank.notes
        return tuple(notes)

    def description(self) -> list[str]:
        """What the data set holds, in lines. Recordings are read for it, all of them."""
        if any(isinstance(clip, Path) for clips in self.clips.values() for clip in clips[:1]):
            _ = self.bank
        name = printable(self.name)
        sizes = ", ".join(f"{count:,} {split}" for split, count in self.sizes.items())
        kind = SYNTHETIC if self.synthetic else "speech"
        filters = f", filters for {self.filter_rate:,} Hz" if self.filter_rate not in (None, self.rate) else ""
        return [
            f"{name}: {kind}, {sizes}; {self.mels} features a frame, {1 / self.seconds_per_frame:.4g} frames a second"
            f"{filters}",
            f"{name}: split {self.split_rule}; sha256 {self.checksum}",
            *(f"  {note}" for note in self.notes),
        ]

    def _offsets(self, split: str) -> NDArray[np.int64]:
        start = sum(self.sizes[before] for before in SPLITS[: SPLITS.index(split)])
        return self.bank.offsets[start : start + self.sizes[split] + 1]
