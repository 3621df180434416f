"""Exhibits and predictions made by hand for the sample study: what a task would have stored."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from support import sample_report
from tiebreak.report.evidence import Evidence
from tiebreak.results.record import ExhibitRecord, FinalRecord, Records

TEST = 200  # test images
SHOWN = 12
FIRST_MAPS = {"cnn-pool": (8, 28, 28), "cnn-strided": (8, 14, 14), "cnn-pool-unpadded": (8, 26, 26)}
SKILL = {"cnn-pool": 0.93, "cnn-strided": 0.88, "cnn-pool-unpadded": 0.91}
DIGITS = tuple(str(number) for number in range(10))


def labels(classes: int) -> npt.NDArray[np.int64]:
    return np.arange(TEST) % classes


def images(many: int, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Something to see: a bright disc, elsewhere in each image."""
    height, width = shape[:2]
    rows, columns = np.mgrid[:height, :width]
    found = []
    for number in range(many):
        centre = (0.3 + 0.04 * (number % 10)) * height, (0.7 - 0.03 * (number % 12)) * width
        disc = 255 * np.exp(-((rows - centre[0]) ** 2 + (columns - centre[1]) ** 2) / (0.05 * height * width))
        found.append(disc if len(shape) == 2 else np.stack([disc, disc[::-1], disc.T][: shape[2]], axis=-1))
    return np.stack(found).astype(np.uint8)


def predictions(design: str, seed: int, classes: int) -> npt.NDArray[np.float32]:
    """Mostly right; what is wrong is the next class, image 7 always so."""
    random = np.random.default_rng([seed, len(design)])
    wrong = random.random(TEST) > SKILL[design]
    wrong[7] = True
    return ((labels(classes) + wrong) % classes).astype(np.float32)


def robustness(design: str, seed: int) -> dict[str, npt.NDArray[np.float32]]:
    random = np.random.default_rng([seed, 9])
    arrays: dict[str, npt.NDArray[Any]] = {}
    for kind, amounts, worst in (("shift", np.arange(-4, 5), 4), ("rotate", np.arange(-40, 50, 10), 40)):
        arrays[f"{kind}_value"] = amounts.astype(np.float32)
        arrays[f"{kind}_accuracy"] = SKILL[design] - 0.6 * (amounts / worst) ** 2 + random.normal(0, 0.01, 9)
    amounts = np.array([0.6, 0.8, 1.0, 1.2, 1.4])
    arrays["scale_value"] = amounts.astype(np.float32)
    arrays["scale_accuracy"] = SKILL[design] - 2 * (amounts - 1) ** 2 + random.normal(0, 0.01, 5)
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def examples(names: Sequence[str], shape: tuple[int, ...]) -> dict[str, npt.NDArray[Any]]:
    index = np.array([7, *range(20, 20 + SHOWN - 1)])
    return {
        "index": index,
        "images": images(SHOWN, shape),
        "labels": labels(len(names))[index],
        "test_labels": labels(len(names)),
        "class_names": np.asarray(names),
    }


def activations(design: str, shape: tuple[int, ...]) -> dict[str, npt.NDArray[Any]]:
    many, height, width = FIRST_MAPS[design]
    maps = np.stack([images(3, (height, width)) / (2.0 + number) for number in range(many)], axis=1)
    return {"images": images(3, shape), "maps": maps.astype(np.float16)}


def shown(
    whole: Evidence,
    *,
    names: Sequence[str] = DIGITS,
    shape: tuple[int, ...] = (28, 28),
    without: Sequence[str] = (),
) -> Evidence:
    """The same results with predictions and exhibits, except those of the designs in `without`."""
    finals: dict[str, dict[str, FinalRecord]] = {}
    exhibits: dict[str, dict[str, ExhibitRecord]] = {}
    for identity, own in whole.records.finals.items():
        run = whole.plan.runs[identity]
        given = predictions(run.design, run.seed, len(names))
        for key, final in own.items():
            stored = given if key == "default" else np.tile(given, 6)
            outcomes = {**final.outcomes, "prediction": stored}
            finals.setdefault(identity, {})[key] = dataclasses.replace(final, outcomes=outcomes)
        if run.setting == {"lr": 0.1} and run.design not in without:
            arrays: dict[str, dict[str, Any]] = {"robustness": robustness(run.design, run.seed)}
            if run.seed == 0:
                arrays |= {"examples": examples(names, shape), "activations": activations(run.design, shape)}
            exhibits[identity] = {
                name: ExhibitRecord(identity=identity, name=name, arrays=each) for name, each in arrays.items()
            }
    records = Records(epochs=whole.records.epochs, runs=whole.records.runs, finals=finals, exhibits=exhibits)
    return dataclasses.replace(whole, records=records)


@functools.cache
def with_exhibits() -> Evidence:
    """Every run finished, published figures, and all exhibits."""
    return shown(sample_report.with_reported())


def changed(whole: Evidence, name: str, **arrays: npt.NDArray[Any] | None) -> Evidence:
    """The same with other arrays in every exhibit of this name; None leaves an array out."""
    exhibits: dict[str, dict[str, ExhibitRecord]] = {}
    for identity, own in whole.records.exhibits.items():
        exhibits[identity] = dict(own)
        if name in own:
            kept = {key: array for key, array in {**own[name].arrays, **arrays}.items() if array is not None}
            exhibits[identity][name] = dataclasses.replace(own[name], arrays=kept)
    return dataclasses.replace(whole, records=dataclasses.replace(whole.records, exhibits=exhibits))
