"""What a program leaves in {out}: scores, learning curves, outcomes of test examples. Every file is checked.

A program is no part of Tiebreak: its files may be missing, cut off, or hold anything.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiebreak import files
from tiebreak.data.npz import ArraySpec, array_names, read_npz
from tiebreak.errors import TiebreakError
from tiebreak.study.program_keys import Program
from tiebreak.text import listed, one_line, printable

SCORES_BYTES = 1 << 20
CURVE_BYTES = 64 << 20
OUTCOME_BYTES = 128 << 20
SPLITS = ("val", "test")
MOST_METRICS = 1000  # of a split, or of an epoch
NAME_LETTERS = 200  # of a metric's name
DEPTH = 20  # of objects in objects, in a learning curve
TOLERANCE = 1e-3  # between a score and the mean of its outcomes, relative to the score or to 1


class MissingMetricError(TiebreakError):
    """The scores are well-formed, but do not hold what the study asks for: every run would be like that."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The scores of a run by split and metric. NaN and infinities are there: the run has diverged."""

    val: Mapping[str, float] = field(default_factory=dict)
    test: Mapping[str, float] = field(default_factory=dict)

    def not_finite(self) -> str:
        """The first score that is no finite number, in words; empty where all are."""
        for split in SPLITS:
            for name, value in getattr(self, split).items():
                if not math.isfinite(value):
                    return f"{split} {name} is {value}"
        return ""


def read_scores_file(out: Path, program: Program, metrics: tuple[str, ...], *, needs_val: bool) -> Scores:
    """The scores that the program left; `metrics` are those that the study compares, the study's own first."""
    path = _inside(out, program.scores)
    if not path.exists():
        raise TiebreakError(f"no scores: {path} is not there")
    content = _json(files.read_text(path, SCORES_BYTES), str(path))
    if not isinstance(content, dict):
        raise TiebreakError(f'{path}: should be an object such as {{"val": {{…}}, "test": {{…}}}}')
    scores = Scores(**{split: _metrics(content.get(split, {}), f"{path}: {split}") for split in SPLITS})
    for split, needed in (("test", metrics), ("val", metrics[:1] if needs_val else ())):
        for metric in needed:
            if metric not in getattr(scores, split):
                there = getattr(scores, split) or content.keys() - set(SPLITS)
                hint = f"it has {listed([printable(name) for name in there])}"
                wanted = f'; write {{"{split}": {{"{metric}": …}}}}' if metric in content else ""
                why = "" if split == "test" else ", which chooses between the settings of the grid"
                raise MissingMetricError(
                    f"{path}: no {split}.{metric}{why} ({hint if there else f'no {split} scores'}){wanted}"
                )
    return scores


def _metrics(content: Any, where: str) -> dict[str, float]:
    if not isinstance(content, dict):
        raise TiebreakError(f"{where}: should be an object of numbers by metric, not {printable(repr(content)[:40])}")
    found = {}
    _check_names(content, where)
    for name, value in content.items():
        if not is_number(value):
            raise TiebreakError(f"{where}.{printable(name)}: should be a number, not {printable(repr(value)[:40])}")
        found[name] = _number(value)
    return found


def _check_names(metrics: Mapping[str, Any], where: str) -> None:
    """Names that can be stored, shown and told apart, and not more of them than anybody reads."""
    if len(metrics) > MOST_METRICS:
        raise TiebreakError(f"{where}: {len(metrics):,} metrics; at most {MOST_METRICS:,} are kept")
    for name in metrics:
        if not name.isprintable() or not 0 < len(name) <= NAME_LETTERS:
            shown = one_line(name, 40)
            raise TiebreakError(
                f"{where}: {shown!r} is no name of a metric: 1 to {NAME_LETTERS} printable characters are"
            )


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf


def read_curves(out: Path, program: Program) -> list[dict[str, float]]:
    """The metrics of each epoch, in order: one JSON object a line, flat (`val_loss`) or by split ({"val": {…}}).

    An `epoch` that is there already replaces it and all after it, so that a program which resumes may repeat some. A
    last line that is cut off is left out. Test scores are not kept: nobody should look at them before the end.
    """
    if program.epochs is None:
        return []
    path = _inside(out, program.epochs)
    if not path.exists():
        return []
    lines = files.read_text(path, CURVE_BYTES).split("\n")
    found: dict[float, dict[str, float]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            content = _json(line, f"{path}: line {number}")
        except TiebreakError:
            if number == len(lines):  # no line feed behind it: the program was interrupted while it wrote
                continue
            raise
        if not isinstance(content, dict):
            raise TiebreakError(f"{path}: line {number}: should be a JSON object")
        key = _number(content["epoch"]) if is_number(content.get("epoch")) else len(found) + 1
        while key in found:
            found.popitem()
        found[key] = _flat(content, f"{path}: line {number}")
        _check_names(found[key], f"{path}: line {number}")
    return list(found.values())


def end_last_line(out: Path, program: Program) -> None:
    """Make the curves of an interrupted run fit to be continued: without a last line that is cut off.

    What the program appends would otherwise stand in that line, and no attempt could be read any more.
    """
    if program.epochs is None:
        return
    try:
        path = _inside(out, program.epochs)
        content = files.read_bytes(path, CURVE_BYTES) if path.exists() else b""
    except TiebreakError:  # left as it is: the run says so when it ends, and the study goes on
        return
    last = content.rpartition(b"\n")[2]
    if not last.strip() or path.suffix == ".gz":
        return
    try:
        json.loads(last)
    except (ValueError, RecursionError):
        os.truncate(path, len(content) - len(last))
    else:
        with path.open("ab") as file:
            file.write(b"\n")


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flat(content: Mapping[str, Any], where: str, depth: int = 0) -> dict[str, float]:
    found: dict[str, float] = {}
    if depth > DEPTH:
        raise TiebreakError(f"{where}: objects in objects, more than {DEPTH} deep")
    for name, value in content.items():
        if isinstance(value, dict):
            found |= {f"{name}_{inner}": each for inner, each in _flat(value, where, depth + 1).items()}
        elif is_number(value) and name != "epoch":
            found[name] = _number(value)
    return {name: value for name, value in found.items() if not name.startswith("test")}


def read_outcomes(out: Path, program: Program, scores: Scores) -> tuple[dict[str, NDArray[np.float32]], str]:
    """An outcome per test example by metric, and why some were left out: their mean has to be the score."""
    if program.outcomes is None:
        return {}, ""
    path = _inside(out, program.outcomes)
    if not path.exists():
        return {}, "" if program.command is None else f"{program.outcomes} is not there"
    names = [name for name in array_names(path) if name in scores.test]
    arrays = read_npz(path, {name: ArraySpec(ndim=(1,), kinds="biuf") for name in names}, OUTCOME_BYTES)
    found, problems = {}, []
    for name, values in arrays.items():
        mean = float(np.mean(values, dtype=np.float64)) if len(values) else math.nan
        if not abs(mean - scores.test[name]) <= TOLERANCE * max(1.0, abs(scores.test[name])):
            problems.append(
                f"the mean of {name} in {program.outcomes} is {mean:.6g}, the score {scores.test[name]:.6g}"
            )
        else:
            found[name] = values.astype(np.float32)
    if not arrays:
        problems.append(f"{program.outcomes} has no array with the name of a test score")
    return found, "; ".join(problems)


def _inside(out: Path, name: str) -> Path:
    return files.inside(out, *PurePosixPath(name).parts)


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TiebreakError(f"{where}: not valid JSON: {printable(str(error)[:100])}") from None
