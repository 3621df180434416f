"""Exhibits of tasks other than image classification, made by hand: texts, heat maps, breakdowns, a graph."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from support import sample_report
from support.sample_exhibits import changed
from support.sample_study import sample_study
from tiebreak.report.evidence import Evidence
from tiebreak.results.record import EpochRecord, ExhibitRecord, FinalRecord
from tiebreak.study import registry
from tiebreak.study.schema import Study
from tiebreak.verdict.decide import make_verdict

Arrays = dict[str, npt.NDArray[Any]]
SPANISH = (
    "La casa es grande y tiene un jardín.",
    "¿Dónde está la biblioteca?",
    "Mañana por la mañana iremos a la playa con los niños.",
)
ENGLISH = (
    "The house is large and has a garden.",
    "Where is the library?",
    "Tomorrow morning we will go to the beach with the children.",
)
OUTPUTS = {
    "cnn-pool": (ENGLISH[0], "Where is the libary?", "Tomorrow  morning we go to the beach with the childern."),
    "cnn-strided": ("The house is big and have garden.", "Where is library", "In the morning the beach, the beach."),
    "cnn-pool-unpadded": ("the horse is large and has a garden.", "Where is the library?\n", ""),
}
HOSTILE = (
    "<script>alert('x')</script>",
    "quotes \" and ' and `code` | *bold* [link](#x) {+no+}",
    "emoji 👩🏽‍🚀 and 🇪🇸, family 👨‍👩‍👧",
    "עברית שלום \u202egnorw ورد",
    "zalgo e\u0301\u0302\u0303\u0304 a\u030a \x1b[31m \x00\ud800",
    "x" * 2000,
    "long " + "word " * 400,
)
GOALS: dict[str, registry.Goal] = {"accuracy": "max", "loss": "min", "bleu": "max", "character_error": "min"}
METRICS = {name: registry.MetricEntry(goal=goal) for name, goal in GOALS.items()}


def samples(design: str, reference: Sequence[str] = ENGLISH) -> Arrays:
    return {
        "input": np.asarray(SPANISH),
        "reference": np.asarray(reference),
        "output": np.asarray(OUTPUTS[design]),
        "heading": np.asarray(["Spanish", "English", "translation"]),
    }


def attention(design: str) -> Arrays:
    """A diagonal between words, and one between letters and the frames of a spectrogram."""
    random = np.random.default_rng(len(design))
    given, made = SPANISH[0].split(), OUTPUTS[design][0].split()
    letters, frames = list("The house is large"), 420
    across = np.linspace(0, 1, frames)
    peaks = np.exp(-((across[None, :] - np.linspace(0, 1, len(letters))[:, None]) ** 2) / 0.002)
    place = np.arange(len(made))[:, None] / len(made) - np.arange(len(given))[None, :] / len(given)
    words = np.exp(-(place**2) / 0.02) + 0.1 * random.random((len(made), len(given)))
    bands = np.sin(np.arange(40)[:, None] / 6 + 20 * across[None, :]) * 20 - 40 + random.normal(0, 4, (40, frames))
    return {
        "weights_0": (words / words.sum(1, keepdims=True)).astype(np.float32),
        "rows_0": np.asarray(made),
        "columns_0": np.asarray(given),
        "title_0": np.asarray("Cross attention, second layer, mean over heads"),
        "weights_1": (peaks / peaks.sum(1, keepdims=True)).astype(np.float32),
        "rows_1": np.asarray(letters),
        "columns_1": np.asarray([""] * frames),
        "title_1": np.asarray("Letters and frames"),
        "picture_1": bands.astype(np.float32),
    }


def curves(design: str, seed: int) -> Arrays:
    random = np.random.default_rng([seed, len(design)])
    lengths = np.array([5, 10, 15, 20, 30, 40])
    scores = 40 - 0.6 * lengths + len(design) / 3 + random.normal(0, 1, 6)
    if design == "cnn-strided":
        scores[-1] = np.nan
    return {
        "length_x": lengths.astype(np.float32),
        "length_y": scores.astype(np.float32),
        "length_n": np.array([200, 340, 280, 120, 40, 9]),
        "length_label": np.asarray(["words in the sentence", "BLEU"]),
        "length_title": np.asarray("BLEU by length of the sentence"),
        "position_x": np.arange(64, dtype=np.float32),
        "position_y": (5 - np.log1p(np.arange(64)) / 2 + random.normal(0, 0.1, 64)).astype(np.float32),
        "position_label": np.asarray(["position in the window", "loss (lower is better)"]),
        "position_title": np.asarray("Loss by position"),
    }


def graph(design: str, nodes: int = 34, classes: int = 4) -> Arrays:
    random = np.random.default_rng(3)
    labels = np.arange(nodes) % classes
    angles = 2 * np.pi * labels / classes
    positions = np.stack([np.cos(angles), np.sin(angles)], 1) + random.normal(0, 0.35, (nodes, 2))
    near = random.integers(0, nodes, (3 * nodes, 2))
    wrong = np.random.default_rng(len(design)).random(nodes) < 0.15
    return {
        "positions": positions.astype(np.float32),
        "edges": near[(labels[near[:, 0]] == labels[near[:, 1]]) | (random.random(len(near)) < 0.1)],
        "predicted": np.where(wrong, (labels + 1) % classes, labels),
        "labels": labels,
        "class_names": np.asarray([f"club {number}" for number in range(classes)]),
    }


def shown(whole: Evidence, *, without: Sequence[str] = (), seeds: int = 10) -> Evidence:
    """The same results with such exhibits, for the first seeds and all designs but those in `without`."""
    exhibits: dict[str, dict[str, ExhibitRecord]] = {}
    for identity in whole.records.finals:
        run = whole.plan.runs[identity]
        if run.setting != {"lr": 0.1} or run.design in without or run.seed >= seeds:
            continue
        arrays: dict[str, Arrays] = {"curves": curves(run.design, run.seed)}
        if run.seed == 0:
            arrays |= {"samples": samples(run.design), "attention": attention(run.design), "graph": graph(run.design)}
        exhibits[identity] = {
            name: ExhibitRecord(identity=identity, name=name, arrays=each) for name, each in arrays.items()
        }
    return dataclasses.replace(whole, records=dataclasses.replace(whole.records, exhibits=exhibits))


@contextmanager
def many_metrics() -> Iterator[None]:
    """The task of the sample study has four metrics for a while."""
    changed = dataclasses.replace(registry.TASKS["classify"], metrics=METRICS)
    with mock.patch.dict(registry.TASKS, {"classify": changed}):
        yield


def measured(whole: Evidence) -> Evidence:
    """The same with values of the other metrics, which follow the accuracy, some epochs without."""
    random = np.random.default_rng(5)
    epochs: dict[str, dict[int, EpochRecord]] = {}
    for trajectory, own in whole.records.epochs.items():
        for epoch, record in own.items():
            value = record.metrics["val_accuracy"]
            more = {"val_bleu": 40 * value + random.normal(0, 2), "val_character_error": 1 - value}
            more |= {"val_bleu": float("nan")} if epoch == 1 and random.random() < 0.3 else {}
            epochs.setdefault(trajectory, {})[epoch] = dataclasses.replace(record, metrics={**record.metrics, **more})
    finals: dict[str, dict[str, FinalRecord]] = {
        identity: {
            key: dataclasses.replace(final, metrics={**final.metrics, "bleu": 40 * value, "character_error": 1 - value})
            for key, final in own.items()
            for value in (final.metrics["accuracy"],)
        }
        for identity, own in whole.records.finals.items()
    }
    return dataclasses.replace(whole, records=dataclasses.replace(whole.records, epochs=epochs, finals=finals))


def of_study(study: Study) -> Evidence:
    plan = sample_report.make_plan(study)
    records = sample_report.make_records(study, plan)
    return Evidence(study=study, plan=plan, records=records, verdict=make_verdict(study, plan, records))


def lower_is_better() -> Evidence:
    """A study whose metric is the loss."""
    return of_study(sample_study(metric="loss", claims=[], reported=[]))


@functools.cache
def with_findings() -> Evidence:
    """Every run finished, and all these exhibits."""
    return shown(sample_report.complete())


def hostile() -> Evidence:
    """Every text of these exhibits is hostile, and there is much of everything."""
    random = np.random.default_rng(0)
    texts, attack = np.asarray(HOSTILE), np.asarray(HOSTILE[0])
    many = graph("cnn-pool", 2708, 7) | {"class_names": texts}
    wide = random.random((40, 60)).astype(np.float32)
    long = random.random((300, 1500)).astype(np.float32)
    registry = np.resize(texts[:5], 60)
    found = changed(
        with_findings(), "samples", input=texts, reference=np.roll(texts, 1), output=texts[::-1], heading=texts[:3]
    )
    found = changed(found, "graph", **many)
    found = changed(found, "curves", length_label=texts[:2], length_title=attack, position_title=texts[1])
    return changed(
        found, "attention", weights_0=wide, rows_0=registry[:40], columns_0=registry, title_0=attack, weights_1=long,
        rows_1=np.full(300, "a"), columns_1=np.full(1500, "")
    )  # fmt: skip
