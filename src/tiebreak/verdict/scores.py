"""Scores that you already have, from a CSV file to verdicts: the engine of `tiebreak compare`. No torch."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tiebreak.errors import TiebreakError, nearest
from tiebreak.files import read_bytes
from tiebreak.verdict.statistics import Compared, Goal, Sample, compare, usable

Seed = int | str
Scores = Mapping[str, Mapping[Seed, float]]

COLUMNS = ("arm", "seed", "score")
MOST_ARMS = 50  # whose pairs are compared unasked: 1,225
LIMIT_BYTES = 64 << 20  # of a file: two million lines


def read_scores(path: Path) -> dict[str, dict[Seed, float]]:
    """Scores by arm and seed, in the order of the file: a CSV with the columns arm, seed and score.

    The first line names the columns, in any order; other columns and empty lines are passed over.
    """
    scores: dict[str, dict[Seed, float]] = {}
    whole_number = re.compile(r"-?[0-9]{1,18}").fullmatch
    for line, arm, seed_text, score_text in _rows(path):
        if not arm or not seed_text:
            raise TiebreakError(f"{path}, line {line}: no {'seed' if arm else 'arm'}; fill it in, or remove the line")
        seed: Seed = int(seed_text) if whole_number(seed_text) else seed_text
        own = scores.setdefault(arm, {})
        if seed in own:
            raise TiebreakError(
                f"{path}, line {line}: arm {arm!r} has a second score for seed {seed}; keep one of them"
            )
        own[seed] = _score(score_text, path, line)
    if not scores:
        raise TiebreakError(f"{path}: no scores; write one line for each arm and seed below the header")
    if len(scores) == 1:
        raise TiebreakError(f"{path}: only one arm, {next(iter(scores))!r}; a comparison takes two")
    return scores


def compare_scores(
    scores: Scores, *, goal: Goal = "max", margin: float, pairs: Sequence[tuple[str, str]] | None = None
) -> list[tuple[str, str, Compared]]:
    """The verdict on each pair of arms (all, in order of appearance, unless `pairs` names some), paired by seed.

    Holm counts all pairs of the call. Seeds that only one arm of a pair has are left out, and a flag says how many.
    """
    if not 0 < margin < math.inf:
        raise TiebreakError(f"margin: should be a positive number in the unit of the scores, not {margin}")
    chosen = list(itertools.combinations(scores, 2)) if pairs is None else list(pairs)
    for name in itertools.chain.from_iterable(chosen):
        if name not in scores:
            raise TiebreakError(f"no arm {name!r} among the scores; {nearest(name, scores)}")
    common = [_common_seeds(scores, a, b) for a, b in chosen]
    samples = [
        Sample(a=_column(scores[a], seeds), b=_column(scores[b], seeds), goal=goal)
        for (a, b), seeds in zip(chosen, common, strict=True)
    ]
    return [
        (a, b, replace(result, flags=result.flags + _unpaired(scores, a, b)))
        for (a, b), result in zip(chosen, compare(samples, margin=margin), strict=True)
    ]


def choose_pairs(scores: Scores, against: str | None, *, all_pairs: bool) -> list[tuple[str, str]]:
    """The pairs to compare: every arm with the baseline `against`, or all of them, for many arms only if asked to."""
    if against is not None:
        if all_pairs:
            raise TiebreakError("--against and --all-pairs: give one of them")
        if against not in scores:
            raise TiebreakError(f"--against {against}: no such arm among the scores; {nearest(against, scores)}")
        return [(arm, against) for arm in scores if arm != against]
    pairs = len(scores) * (len(scores) - 1) // 2
    if len(scores) > MOST_ARMS and not all_pairs:
        raise TiebreakError(
            f"{len(scores)} arms make {pairs:,} pairs, and each needs more seeds to be decided beside the others; "
            "give --against BASELINE to compare every arm with one, or --all-pairs"
        )
    return list(itertools.combinations(scores, 2))


def _rows(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """(number, arm, seed, score) of each line that is not empty, as text."""
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        arm, seed, score = (_position(header, column, path) for column in COLUMNS)
        last = max(arm, seed, score)
        for row in reader:
            if len(row) > last:
                found = row[arm].strip(), row[seed].strip(), row[score].strip()
                if any(found) or any(cell.strip() for cell in row):
                    yield reader.line_num, *found
            elif any(cell.strip() for cell in row):
                where = f"{path}, line {reader.line_num}"
                raise TiebreakError(f"{where}: {len(row)} cells where the header has {len(header)}; complete it")
    except csv.Error as error:
        raise TiebreakError(f"{path}, line {reader.line_num}: not valid CSV ({error}); check the quotes") from None


def _text(path: Path) -> str:
    try:
        text = read_bytes(path, LIMIT_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TiebreakError(f"{path}: not UTF-8 text (byte {error.start}); save it as CSV in UTF-8") from None
    if not text.strip():
        raise TiebreakError(f"{path}: the file is empty; it should have the columns {', '.join(COLUMNS)}")
    return text


def _position(header: list[str], column: str, path: Path) -> int:
    where = f"{path}, line 1"
    if len(header) == 1 and re.search(r"[;\t]", header[0]):
        raise TiebreakError(f"{where}: the columns are not separated by commas; save the file with commas")
    if header.count(column) > 1:
        raise TiebreakError(f"{where}: {header.count(column)} columns are called {column!r}; rename all but one")
    if column not in header:
        hint = nearest(column, [name for name in header if name and name not in COLUMNS])
        raise TiebreakError(f"{where}: no column {column!r}; the first line names arm, seed and score ({hint})")
    return header.index(column)


def _score(text: str, path: Path, line: int) -> float:
    try:
        score = float(text)
    except ValueError:
        raise TiebreakError(f"{path}, line {line}: the score {text!r} is not a number; write it like 0.93") from None
    if not usable(score):
        where = f"{path}, line {line}"
        raise TiebreakError(f"{where}: the score {text!r} cannot be compared; remove the line of a run that failed")
    return score


def _common_seeds(scores: Scores, a: str, b: str) -> list[Seed]:
    common = [seed for seed in scores[a] if seed in scores[b]]
    if a == b or not common:
        problem = (
            "an arm cannot be compared with itself" if a == b else "they share no seed, and runs are paired by seed"
        )
        raise TiebreakError(f"arms {a!r} and {b!r}: {problem}")
    return common


def _column(scores: Mapping[Seed, float], seeds: Sequence[Seed]) -> NDArray[np.float64]:
    return np.array([scores[seed] for seed in seeds], dtype=np.float64)


def _unpaired(scores: Scores, a: str, b: str) -> tuple[str, ...]:
    alone = {name: len(scores[name].keys() - scores[other].keys()) for name, other in ((a, b), (b, a))}
    parts = [f"{count} of {name}" for name, count in alone.items() if count]
    return (f"seeds without a partner, left out: {', '.join(parts)}",) if parts else ()
