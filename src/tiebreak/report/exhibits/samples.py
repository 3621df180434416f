"""Sample outputs of text tasks: inputs, references and the outputs of every arm, errors against the reference marked.

Output and reference are aligned with the least number of edits, letter by letter. A letter is what a reader takes for
one: with its accents, an emoji with its modifiers. So an accent is never parted from what it stands on.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy.typing as npt

from tiebreak.report.evidence import Evidence
from tiebreak.report.exhibits import prepared
from tiebreak.text import number_of

Kind = Literal["same", "wrong", "added", "missing", "cut"]
BUDGET = 120_000  # characters of the page
MARKUP = 60  # characters around a marked piece
LONGEST, MOST_ALIGNED = 600, 5_000  # letters of a text that are shown, and that are aligned
JOINER = "\N{ZERO WIDTH JOINER}"
JOINED = {JOINER, "\N{ZERO WIDTH NON-JOINER}"}
SIGNS = {" ": "␣", "\n": "↵\n", "\t": "⇥"}  # of white space where it is an error
HEADING = ("input", "reference", "output")


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A stretch of an output: as in the reference, wrong (`instead` of something), added, missing, or cut off."""

    kind: Kind
    text: str
    instead: str = ""

    def plain(self) -> str:
        """The same without mark-up: [-missing-] and {+added+}."""
        before = f"[-{self.text}-]" if self.kind == "missing" else f"[-{self.instead}-]" if self.instead else ""
        after = f"{{+{self.text}+}}" if self.kind in ("wrong", "added") else ""
        return self.text if self.kind in ("same", "cut") else before + after


@dataclass(frozen=True, kw_only=True)
class Output:
    """The output of one run of an arm for an input."""

    arm: str
    index: int
    seed: int
    pieces: Sequence[Piece]
    errors: str  # in words; empty without a reference

    def plain(self) -> str:
        """The output as text."""
        return "".join(piece.plain() for piece in self.pieces)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """An input, what is expected of it (empty: nothing) and the outputs."""

    input: str
    reference: str
    outputs: Sequence[Output]

    def cost(self) -> int:
        """About how many characters of the page it takes."""
        pieces = [piece for output in self.outputs for piece in output.pieces]
        return len(self.input) + len(self.reference) + sum(len(p.text) + len(p.instead) + MARKUP for p in pieces)


def content(evidence: Evidence) -> dict[str, Any]:
    """The samples that fit on a page, and how many there are."""
    found, heading = samples(evidence)
    kept: list[Sample] = []
    spent = 0
    for sample in found:
        spent += sample.cost()
        if kept and spent > BUDGET:
            break
        kept.append(sample)
    left = f"Shown: {len(kept)} of {len(found)} examples." if len(kept) < len(found) else ""
    compared = any(sample.reference for sample in kept)
    return {"samples": kept, "sample_heading": heading, "samples_left": left, "samples_compared": compared}


def samples(evidence: Evidence) -> tuple[list[Sample], tuple[str, str, str]]:
    """Every stored example with the output of one run of each arm, and what its parts are called."""
    heading = HEADING
    texts: dict[tuple[str, str, int], list[Output]] = {}
    for index, arm in evidence.arms_with_runs():
        seed, arrays = next(((s, a) for s, a in prepared.stored(evidence, arm, "samples") if _whole(a)), (0, None))
        if arrays is None:
            continue
        named = [visible(str(name)) for name in arrays["heading"].tolist()] if "heading" in arrays else []
        heading = (named[0], named[1], named[2]) if len(named) == 3 and heading == HEADING else heading
        seen: dict[tuple[str, str], int] = {}
        for given, expected, made in zip(*(arrays[key].tolist() for key in HEADING), strict=False):
            number = seen[given, expected] = seen.get((given, expected), -1) + 1  # one prompt may be continued twice
            output = _output(arm, index, seed, expected, made)
            texts.setdefault((given, expected, number), []).append(output)
    found = [
        Sample(input=_cut(given), reference=_cut(expected), outputs=outputs)
        for (given, expected, _), outputs in texts.items()
    ]
    return found, heading


def _whole(arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
    return all(key in arrays and arrays[key].ndim == 1 and arrays[key].dtype.kind == "U" for key in HEADING)


def _output(arm: str, index: int, seed: int, reference: str, text: str) -> Output:
    alone = [Piece(kind="same", text=visible(text))] if text else []
    pieces = aligned(reference, text) if reference else alone
    return Output(arm=arm, index=index, seed=seed, pieces=_shortened(pieces), errors=_errors(reference, text))


def _errors(reference: str, text: str) -> str:
    if not reference:
        return ""
    from rapidfuzz.distance import Levenshtein

    expected = letters(reference)[:MOST_ALIGNED]
    errors = Levenshtein.distance(expected, letters(text)[:MOST_ALIGNED])
    if not errors:
        return "no error"
    return f"{number_of(errors, 'error')}, {number_of(len(expected), 'letter')} in the reference"


def aligned(reference: str, text: str) -> list[Piece]:
    """The text in pieces, by the least number of edits that turn the reference into it."""
    from rapidfuzz.distance import Levenshtein

    expected, made = letters(reference)[:MOST_ALIGNED], letters(text)[:MOST_ALIGNED]
    kinds: dict[str, Kind] = {"equal": "same", "replace": "wrong", "insert": "added"}
    pieces = []
    for step in Levenshtein.opcodes(expected, made):
        before = "".join(expected[step.src_start : step.src_end])
        after = "".join(made[step.dest_start : step.dest_end])
        if step.tag == "equal":
            pieces.append(Piece(kind="same", text=visible(after)))
        elif step.tag == "delete":
            pieces.append(Piece(kind="missing", text=_signed(before)))
        else:
            pieces.append(Piece(kind=kinds[step.tag], text=_signed(after), instead=_signed(before)))
    return pieces


def letters(text: str) -> list[str]:
    """The text as a reader takes it apart.

    >>> [len(letter) for letter in letters("e\\N{COMBINING ACUTE ACCENT}a")]
    [2, 1]
    """
    found: list[str] = []
    for char in text:
        modifier = char in JOINED or unicodedata.category(char).startswith("M") or "🏻" <= char <= "🏿"
        if found and not found[-1].isspace() and (modifier or found[-1].endswith(JOINER)):
            found[-1] += char
        else:
            found.append(char)
    return found


def visible(text: str) -> str:
    """Text that cannot drive a page: control characters and changes of direction are replaced, line breaks stay."""
    return "".join(char if char.isprintable() or char in JOINED or char in SIGNS else "�" for char in text)


def _signed(text: str) -> str:
    """The same where white space is an error, and so must be seen."""
    return "".join(SIGNS.get(char, char) for char in visible(text))


def _shortened(pieces: Sequence[Piece]) -> list[Piece]:
    """The first pieces, as many as make up what is shown of one text."""
    kept: list[Piece] = []
    spent = 0.0
    for number, piece in enumerate(pieces):
        cost = MARKUP / 4 if piece.kind != "same" else 0  # a text of nothing but errors is shown less far
        room = int(LONGEST - spent - cost)
        spent += len(piece.text) + cost
        if len(piece.text) > room:
            shown = "".join(letters(piece.text)[: max(room, 0)])
            kept += [Piece(kind=piece.kind, text=shown, instead=piece.instead[:LONGEST])] if shown else []
            left = sum(len(letters(each.text)) for each in pieces[number:]) - len(letters(shown))
            return [*kept, Piece(kind="cut", text=f" … and {number_of(left, 'more letter')}")]
        kept.append(piece)
    return kept


def _cut(text: str) -> str:
    found = letters(visible(text))
    more = len(found) - LONGEST
    return "".join(found[:LONGEST]) + (f" … and {number_of(more, 'more letter')}" if more > 0 else "")
