"""The exhibits that tasks stored, prepared for a reader: robustness curves, example images, answers, activation maps.

Only what is stored is read. What is absent, or does not fit together, is left out. Letters in shapes: k images,
m maps, H and W image size, C channels or classes, N test examples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tiebreak.report.evidence import Evidence, Point, point
from tiebreak.report.exhibits.inline_images import Pixels
from tiebreak.text import printable
from tiebreak.verdict.ranges import SHARE

Labels = npt.NDArray[np.int64]
MOVES = {"shift": "shift to the right, pixels", "rotate": "rotation, degrees", "scale": "scale factor"}


@dataclass(frozen=True, kw_only=True)
class Line:
    """An arm's accuracy over the amounts of one kind of move."""

    arm: str
    index: int
    points: Sequence[Point]


@dataclass(frozen=True, kw_only=True)
class Move:
    """One way to move images, such as a shift, and the accuracy of every arm on them."""

    kind: str
    quantity: str
    lines: Sequence[Line]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The class that an arm predicts for an image in most of its runs."""

    arm: str
    index: int
    predicted: str
    times: int
    seeds: int
    right: bool


@dataclass(frozen=True, kw_only=True)
class Example:
    """A test image with its true class and the answers of the arms in question."""

    number: int  # in the test split
    image: Pixels
    truth: str
    answers: Sequence[Answer]


@dataclass(frozen=True, kw_only=True)
class Maps:
    """The activations of a run's first layer on one image: maps [m, h, w]."""

    image: Pixels
    truth: str  # empty where it is not known
    maps: npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Activations:
    """The first layer of an arm's first run with maps."""

    arm: str
    index: int
    seed: int
    shuffled: bool  # the network sees the images with their pixels moved
    rows: Sequence[Maps]


@dataclass(frozen=True, kw_only=True)
class Split:
    """Labels [N] of the test split, and the names of the classes."""

    labels: Labels
    names: Sequence[str]

    def name(self, number: int) -> str:
        """The class with this number."""
        return self.names[number] if 0 <= number < len(self.names) else str(number)


def robustness(evidence: Evidence) -> list[Move]:
    """Accuracy on moved images, over the seeds of every arm with runs of its own."""
    moves = []
    for kind, quantity in MOVES.items():
        drawn = [(arm, index, _curve(evidence, arm, kind)) for index, arm in evidence.arms_with_runs()]
        lines = [Line(arm=arm, index=index, points=points) for arm, index, points in drawn if points]
        if lines:
            moves.append(Move(kind=kind, quantity=quantity, lines=lines))
    return moves


def _curve(evidence: Evidence, arm: str, kind: str) -> list[Point]:
    scores: dict[float, list[float]] = {}
    for _, arrays in stored(evidence, arm, "robustness"):
        if f"{kind}_value" in arrays and f"{kind}_accuracy" in arrays:
            pairs = zip(arrays[f"{kind}_value"].tolist(), arrays[f"{kind}_accuracy"].tolist(), strict=False)
            for value, score in pairs:
                if math.isfinite(value) and math.isfinite(score):
                    scores.setdefault(round(value, 4), []).append(score)
    return [point(value, scores[value], SHARE) for value in sorted(scores)]


def examples(evidence: Evidence) -> list[Example]:
    """Stored test images that at least one run of the primary comparison's arms gets wrong."""
    arms = list(dict.fromkeys(evidence.shared.get(arm, arm) for arm in evidence.primary_arms()))
    found = next((arrays for arm in arms for _, arrays in stored(evidence, arm, "examples") if _whole(arrays)), None)
    if found is None:
        return []
    split = _split(found)
    given = {arm: own for arm in arms if (own := predictions(evidence, arm, len(split.labels)))}
    shown = []
    for number, image in zip(found["index"].tolist(), found["images"], strict=False):
        answers = tuple(_answer(evidence, arm, split, number, list(own.values())) for arm, own in given.items())
        if any(not answer.right or answer.times < answer.seeds for answer in answers):
            truth = split.name(int(split.labels[number]))
            shown.append(Example(number=number, image=image, truth=truth, answers=answers))
    return shown


def _answer(evidence: Evidence, arm: str, split: Split, number: int, given: Sequence[Labels]) -> Answer:
    counted = np.bincount([int(found[number]) for found in given])
    most = int(counted.argmax())
    return Answer(
        arm=arm,
        index=evidence.index(arm) or 0,
        predicted=split.name(most),
        times=int(counted[most]),
        seeds=len(given),
        right=most == int(split.labels[number]),
    )


def activations(evidence: Evidence) -> list[Activations]:
    """The maps of the first run that has any, for every arm with runs of its own."""
    found = []
    for index, arm in evidence.arms_with_runs():
        seed, arrays = next(stored(evidence, arm, "activations"), (0, {}))
        images, maps = arrays.get("images"), arrays.get("maps")
        if images is None or maps is None or images.ndim not in (3, 4) or maps.ndim != 4 or not maps.size:
            continue
        labels = next((_labels(shown) for own, shown in stored(evidence, arm, "examples") if own == seed), [])
        truths = [*labels, *[""] * len(images)]
        rows = [
            Maps(image=image, truth=truth, maps=own) for image, truth, own in zip(images, truths, maps, strict=False)
        ]
        identity = dict(evidence.identities(arm))[seed]
        shuffled = bool(evidence.plan.runs[identity].options.get("shuffle_pixels", False))
        found.append(Activations(arm=arm, index=index, seed=seed, shuffled=shuffled, rows=rows))
    return found


def _labels(arrays: Mapping[str, npt.NDArray[Any]]) -> list[str]:
    if not _whole(arrays):
        return []
    split = _split(arrays)
    return [split.name(int(split.labels[number])) for number in arrays["index"].tolist()]


def predictions(evidence: Evidence, arm: str, length: int) -> dict[int, Labels]:
    """The answers [N] of the arm's runs at its chosen setting, by seed, where there are as many as test examples."""
    evaluation = evidence.plan.arm(arm).evaluation
    found = {}
    for seed, identity in evidence.identities(arm):
        final = evidence.records.finals.get(identity, {}).get(evaluation)
        given = final.outcomes.get("prediction") if final is not None else None
        if given is not None and len(given) == length and evidence.status(identity) == "done" and np.all(given >= 0):
            found[seed] = np.asarray(given).astype(np.int64)
    return found


def splits(evidence: Evidence, arm: str) -> Iterator[Split]:
    """The test splits that exhibits describe: the arm's own first."""
    for name in dict.fromkeys((arm, *(item.name for item in evidence.plan.arms))):
        for _, arrays in stored(evidence, name, "examples"):
            if _whole(arrays):
                yield _split(arrays)


def _whole(arrays: Mapping[str, npt.NDArray[Any]]) -> bool:
    """Whether an exhibit of examples has all its parts, and these fit together."""
    if not {"index", "images", "test_labels", "class_names"} <= arrays.keys():
        return False
    index, labels = arrays["index"], arrays["test_labels"]
    return bool(
        arrays["images"].ndim in (3, 4)
        and len(labels)
        and labels.min() >= 0
        and np.all((index >= 0) & (index < len(labels)))
    )


def _split(arrays: Mapping[str, npt.NDArray[Any]]) -> Split:
    names = [printable(str(name)) for name in arrays["class_names"].tolist()]
    return Split(labels=arrays["test_labels"].astype(np.int64), names=names)


def stored(evidence: Evidence, arm: str, name: str) -> Iterator[tuple[int, Mapping[str, npt.NDArray[Any]]]]:
    """One kind of exhibit of the arm's runs at its chosen setting, by seed."""
    for seed, identity in evidence.identities(arm):
        record = evidence.records.exhibits.get(identity, {}).get(name)
        if record is not None:
            yield seed, record.arrays
