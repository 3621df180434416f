"""The interval over test examples of a whole verdict, on outcomes that go through the tasks' own `score`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support import hand_made
from tiebreak import catalog
from tiebreak.results.record import EpochRecord, FinalRecord, Records, RunRecord
from tiebreak.study.registry import TASKS
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.influence import influence
from tiebreak.verdict.model import ComparisonResult

Outcomes = dict[str, NDArray[Any]]
Draw = Callable[[np.random.Generator, float], Outcomes]
SEEDS, EXAMPLES = 8, 60


def windows(source: np.random.Generator, level: float) -> Outcomes:
    """Language: a few long windows, many short ones. The short ones are hard for the second network, `level` above."""
    tokens = np.where(np.arange(EXAMPLES) < 20, 1_000, 10)
    each = 4.0 + 0.3 * source.standard_normal(EXAMPLES) + np.where(tokens == 10, -4 * level, level)
    return {"loss": (each * tokens).astype(np.float32), "tokens": tokens.astype(np.float32)}


def symbols(source: np.random.Generator, level: float) -> Outcomes:
    """Translation and speech: targets of several lengths, with some symbols written wrongly."""
    lengths = source.integers(2, 9, EXAMPLES)  # the end included
    places = np.arange(12)
    targets = np.where(places < lengths[:, None] - 1, source.integers(4, 8, (EXAMPLES, 12)), 0)
    targets[np.arange(EXAMPLES), lengths - 1] = 2
    wrong = source.random((EXAMPLES, 12)) < 0.2 + level
    written = np.where(wrong & (targets > 3), source.integers(4, 8, (EXAMPLES, 12)), targets)
    losses = lengths * (1 + level + source.random(EXAMPLES))
    found = {"loss": losses, "symbols": lengths, "targets": targets, "written": written, "length": lengths - 1}
    return {name: values.astype(np.float32) for name, values in found.items()}


def classes(source: np.random.Generator, level: float) -> Outcomes:
    label = source.integers(0, 3, EXAMPLES)
    right = source.random(EXAMPLES) < 0.8 - level
    found = {
        "accuracy": right,
        "loss": source.random(EXAMPLES),
        "label": label,
        "prediction": np.where(right, label, (label + 1) % 3),
        "confidence": source.uniform(0.4, 1, EXAMPLES),
    }
    return {name: values.astype(np.float32) for name, values in found.items()}


DRAWS: Mapping[str, Draw] = {
    "classify": classes,
    "classify-text": classes,
    "nodes": classes,
    "language": windows,
    "translate": symbols,
    "transcribe": symbols,
}
WITHOUT = ("macro_f1", "calibration_error")  # neither a mean nor a ratio over examples: no interval over them
METRICS = [(task, metric) for task, entry in TASKS.items() for metric in entry.metrics if metric not in WITHOUT]


@pytest.mark.parametrize(("task", "metric"), METRICS)
def test_a_metric_is_the_functional_that_the_registry_says(task: str, metric: str) -> None:
    scores, kept = catalog.TASKS[task].score(DRAWS[task](np.random.default_rng(0), 0.1))
    entry = TASKS[task].metrics[metric]
    found = influence(entry, kept[entry.of or metric], kept.get(entry.weight))
    assert found.mean() == pytest.approx(scores[metric], rel=1e-5)


@pytest.mark.parametrize(("task", "metric"), METRICS)
def test_its_spread_is_that_of_a_bootstrap_through_the_score_of_the_task(task: str, metric: str) -> None:
    source = np.random.default_rng(1)
    outcomes = DRAWS[task](source, 0.1)
    entry, kept = TASKS[task].metrics[metric], catalog.TASKS[task].score(outcomes)[1]
    values = influence(entry, kept[entry.of or metric], kept.get(entry.weight))
    draws = 300
    scores = []
    for _ in range(draws):
        rows = source.integers(0, EXAMPLES, EXAMPLES)
        scores.append(catalog.TASKS[task].score({name: each[rows] for name, each in outcomes.items()})[0][metric])
    assert values.std() / np.sqrt(EXAMPLES) == pytest.approx(np.std(scores), rel=0.25), "Monte-Carlo error: 4 %"


ARMS = [{"name": name, "design": name} for name in ("rnn-tanh", "rnn-sigmoid", "lstm", "transformer")]
PAIR = {"a": "rnn-tanh", "b": "rnn-sigmoid", "primary": True}
FOUR = {
    "kind": "interaction",
    "name": "four",
    "a": "rnn-tanh",
    "b": "rnn-sigmoid",
    "c": "lstm",
    "d": "transformer",
}


Keep = Callable[[str], bool]


def compared(name: str, *comparisons: Mapping[str, Any], keep: Keep = bool) -> ComparisonResult:
    """One comparison of language models whose losses are `windows`, with a higher `level` for every further arm."""
    given: dict[str, Any] = {
        "task": "language",
        "data": "pydoc",
        "metric": "perplexity",
        "grid": {},
        "margin": 0.5,
        "seeds": SEEDS,
    }
    budget = {"epochs": 2, "batch": 1}
    study = hand_made.study(**given, budget=budget, arms=ARMS, comparisons=[*comparisons])
    plan = hand_made.plan(study)
    epochs, runs, finals = {}, {}, {}
    for place, arm in enumerate(plan.arms):
        for identity in arm.runs.values():
            run = plan.runs[identity]
            outcomes = windows(np.random.default_rng(run.seed), 0.1 * place)
            metrics, kept = catalog.TASKS["language"].score(outcomes)
            runs[identity] = RunRecord(identity=identity, trajectory=run.trajectory, status="done", epoch=2)
            trained = {"metrics": {"val_perplexity": 9.0}, "seconds": {"train": 1.0}}
            epochs[run.trajectory] = {n: EpochRecord(trajectory=run.trajectory, epoch=n, **trained) for n in (1, 2)}
            outcomes = {key: values for key, values in kept.items() if keep(key)}
            finals[identity] = {
                "default": FinalRecord(
                    identity=identity, evaluation="default", metrics=metrics, outcomes=outcomes, seconds=0.0
                )
            }
    verdict = make_verdict(study, plan, Records(epochs=epochs, runs=runs, finals=finals))
    return next(item for item in verdict.comparisons if item.name == name)


def test_the_interval_of_a_perplexity_is_around_its_difference() -> None:
    """Seen: a difference of +4.45 with an interval from -39.0 to -17.3, since the mean over windows fell."""
    item = compared("rnn-tanh vs rnn-sigmoid", PAIR)
    assert item.difference is not None
    assert item.difference < -4
    assert item.examples_low is not None
    assert item.examples_high is not None
    assert item.examples_low < item.difference < item.examples_high < 0


def test_that_of_a_difference_of_differences_too() -> None:
    item = compared("four", PAIR, FOUR)
    assert item.difference is not None
    assert item.examples_low is not None
    assert item.examples_high is not None
    assert item.examples_low < item.difference < item.examples_high


def test_runs_without_weights_have_no_interval_over_examples() -> None:
    """Records of an older version: what the score was weighted by is not known."""
    item = compared("rnn-tanh vs rnn-sigmoid", PAIR, keep=lambda name: not name.startswith("weight_"))
    assert item.difference is not None
    assert (item.examples_low, item.examples_high) == (None, None)
