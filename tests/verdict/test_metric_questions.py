"""Questions about metrics, on records made by hand: is one above the other, do they rise together?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from support import hand_made
from tiebreak.errors import TiebreakError
from tiebreak.report.evidence import Evidence
from tiebreak.report.page.comparisons import comparison_rows
from tiebreak.results.record import EpochRecord, FinalRecord, Records, RunRecord
from tiebreak.results.tally import least_correlation
from tiebreak.study.schema import Study
from tiebreak.verdict.decide import make_verdict

Make = Callable[..., Study]
NOISE = (0.004, -0.003, 0.001, 0.002, -0.004, 0.003, -0.002, -0.001)  # by seed: mean 0
SEEDS = len(NOISE)

SPEECH = {
    "task": "transcribe",
    "data": "spoken-numbers",
    "metric": "dl",
    "arms": [
        {"name": name, "design": f"speech-{name}", "build": {"width": 16, "strides": 2}}
        for name in ("attention", "lstm")
    ],
}
MAIN = {"a": "attention", "b": "lstm", "primary": True}
ORDER = {"kind": "order", "name": "order", "arm": "attention", "metrics": ["cosine", "jaccard", "dl"], "margin": 0.001}
AGREE = {"kind": "agreement", "name": "agree", "arm": "lstm", "metrics": ["dl", "jaccard", "cosine"], "margin": 0.1}


def spoken(
    study: Study, finals: Mapping[str, float], courses: Mapping[str, list[float]], seeds: int = SEEDS
) -> Evidence:
    """The evidence where every run ends with these metrics, but for noise, after these values on validation."""
    plan = hand_made.plan(study)
    epochs: dict[str, dict[int, EpochRecord]] = {}
    runs: dict[str, RunRecord] = {}
    finals_of: dict[str, dict[str, FinalRecord]] = {}
    for identity, run in plan.runs.items():
        if run.seed >= seeds:
            continue
        runs[identity] = RunRecord(identity=identity, trajectory=run.trajectory, status="done", epoch=run.epochs)
        epochs[run.trajectory] = {
            epoch: EpochRecord(
                trajectory=run.trajectory,
                epoch=epoch,
                metrics={f"val_{name}": values[epoch - 1] for name, values in courses.items()},
                seconds={"train": 1.0},
            )
            for epoch in range(1, run.epochs + 1)
        }
        noisy = {name: value + NOISE[run.seed] * place for place, (name, value) in enumerate(finals.items())}
        outcomes = {name: np.full(5, value, np.float32) for name, value in noisy.items()}
        finals_of[identity] = {
            "default": FinalRecord(
                identity=identity, evaluation="default", metrics=noisy, outcomes=outcomes, seconds=0.1
            )
        }
    records = Records(epochs=epochs, runs=runs, finals=finals_of)
    return Evidence(study=study, plan=plan, records=records, verdict=make_verdict(study, plan, records))


FINALS = {"cosine": 0.9, "jaccard": 0.8, "dl": 0.7}
RISING = {"cosine": [0.1, 0.2, 0.3, 0.4], "jaccard": [0.2, 0.3, 0.5, 0.6], "dl": [0.1, 0.4, 0.5, 0.9]}


def of_metrics(tiny_study: Make, *more: Mapping[str, Any]) -> Study:
    return tiny_study(**SPEECH, seeds=SEEDS, budget={"epochs": 4, "batch": 8}, comparisons=[MAIN, *more])


@pytest.mark.parametrize(
    ("changed", "expected"),
    [({}, ["a", "a"]), ({"jaccard": 0.95}, ["b", "a"]), ({"dl": 0.8001}, ["a", "undecided"])],
)
def test_an_order_compares_each_metric_with_the_next_on_the_same_runs(
    tiny_study: Make, changed: dict[str, float], expected: list[str]
) -> None:
    verdict = spoken(of_metrics(tiny_study, ORDER), {**FINALS, **changed}, RISING).verdict
    found = [item for item in verdict.comparisons if item.group == "order"]
    assert [item.verdict for item in found] == expected
    assert [(item.a, item.b) for item in found] == [
        ("cosine of attention", "jaccard of attention"),
        ("jaccard of attention", "dl of attention"),
    ]
    assert len({item.name for item in found}) == 2
    assert found[0].sentence.startswith(
        f"cosine of attention is {'above' if expected[0] == 'a' else 'below'} jaccard of attention (difference "
    )
    assert found[0].examples_low is not None


@pytest.mark.parametrize(
    ("changed", "expected", "told"),
    [
        ({}, "a", "rise together"),
        ({"jaccard": [0.6, 0.5, 0.3, 0.2]}, "b", "falls where another rises"),
        ({"jaccard": [0.5] * 4}, "same", "nothing to do with each other"),
    ],
)
def test_metrics_agree_when_they_rise_together_over_epochs(
    tiny_study: Make, changed: dict[str, list[float]], expected: str, told: str
) -> None:
    (found,) = [
        item
        for item in spoken(of_metrics(tiny_study, AGREE), FINALS, {**RISING, **changed}).verdict.comparisons
        if item.kind == "agreement"
    ]
    assert found.verdict == expected
    assert told in found.sentence
    assert "dl, jaccard and cosine of lstm" in found.sentence
    assert found.difference == pytest.approx({"a": 1.0, "b": -1.0, "same": 0.0}[expected])


def test_questions_about_metrics_are_undecided_without_records(tiny_study: Make) -> None:
    verdict = spoken(of_metrics(tiny_study, ORDER, AGREE), FINALS, RISING, seeds=0).verdict
    assert [item.verdict for item in verdict.comparisons] == ["undecided"] * 4
    assert all(item.sentence for item in verdict.comparisons)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"metrics": ["cosine", "los"]}, "unknown name 'los'"),
        ({"metrics": ["cosine", "loss"]}, "loss"),
        ({"metrics": ["cosine"]}, "metrics"),
        ({"metrics": ["cosine", "cosine"]}, "twice"),
        ({"primary": True}, "primary"),
        ({"arm": "atention"}, "unknown name 'atention'"),
    ],
)
def test_a_wrong_question_about_metrics_is_refused(tiny_study: Make, changed: dict[str, Any], told: str) -> None:
    for item in (ORDER, AGREE):
        with pytest.raises(TiebreakError, match=told):
            of_metrics(tiny_study, {**item, **changed})


def test_the_least_correlation_is_scipys() -> None:
    values = np.random.default_rng(0).normal(size=(12, 3)).round(1)  # with ties
    from scipy.stats import spearmanr

    pairs = [(0, 1), (0, 2), (1, 2)]
    wanted = min(float(spearmanr(values[:, one], values[:, other]).statistic) for one, other in pairs)
    assert least_correlation(values) == pytest.approx(wanted)


def test_a_report_has_both_sides_of_a_question_about_metrics(tiny_study: Make) -> None:
    evidence = spoken(of_metrics(tiny_study, ORDER, AGREE), FINALS, RISING)
    rows = {row.name: row.outcome for row in comparison_rows(evidence.verdict)}
    assert list(rows.values())[1:] == [
        "cosine of attention is higher",
        "jaccard of attention is higher",
        "they rise together",
    ]
    _, first, second, agreement = (evidence.sides(item) for item in evidence.verdict.comparisons)
    assert set(first.scores[0].values()) == {0.9}
    assert first.scores[1] == second.scores[0]
    assert first.places == (0, 0)
    assert set(agreement.scores[0].values()) == {1.0}
    assert set(agreement.scores[1].values()) == {0.0}
    assert agreement.places == (1, 1)
