"""The verdict on records made by hand: every number here was chosen, none was trained."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import bad_studies
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan
from tiebreak.results.record import EpochRecord, FinalRecord, Records, RunRecord, Status
from tiebreak.study.schema import Study
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.model import Verdict

Make = Callable[..., Study]

POOL, STRIDED, PAIR, TUNED = bad_studies.POOL, bad_studies.STRIDED, bad_studies.PAIR, bad_studies.TUNED
FOUR = [POOL, STRIDED, {**POOL, "name": "pool-2", "options": {"shuffle_pixels": True}},
        {**STRIDED, "name": "strided-2", "options": {"shuffle_pixels": True}}]  # fmt: skip
NOISE = (0.004, -0.003, 0.001, 0.002, -0.004, 0.003, -0.002, -0.001)  # by seed: mean 0
SEEDS = len(NOISE)


@dataclass(frozen=True)
class Score:
    """What one run reached; `val` is by epoch, the last for all later ones."""

    accuracy: float = 0.5
    loss: float = 0.5
    val: tuple[float, ...] = (0.5,)
    train: tuple[float, ...] = (1.0,)


Outcome = Score | Status | None
Outcomes = Callable[[str, Mapping[str, float], int], Outcome]


@dataclass
class Bench:
    """A study, its plan, and the verdict on outcomes given by arm, setting and seed."""

    study: Study
    plan: Plan
    records: Records = field(default_factory=lambda: Records(epochs={}, runs={}, finals={}))

    def verdict(self, outcome: Outcomes) -> Verdict:
        epochs: dict[str, dict[int, EpochRecord]] = {}
        runs: dict[str, RunRecord] = {}
        finals: dict[str, dict[str, FinalRecord]] = {}
        for arm in self.plan.arms:
            for setting in self.study.settings():
                for seed in range(self.study.seeds):
                    run = self.plan.runs[arm.run(setting, seed)]
                    found = outcome(arm.name, setting, seed)
                    if found is None:
                        continue
                    status = "done" if isinstance(found, Score) else found
                    runs[run.identity] = RunRecord(
                        identity=run.identity, trajectory=run.trajectory, status=status, epoch=run.epochs
                    )
                    if isinstance(found, Score):
                        epochs[run.trajectory] = _epochs(run.trajectory, run.epochs, found)
                        final = _final(run.identity, arm.evaluation, found)
                        finals.setdefault(run.identity, {})[arm.evaluation] = final
        self.records = Records(epochs=epochs, runs=runs, finals=finals)
        return make_verdict(self.study, self.plan, self.records)


def _epochs(trajectory: str, count: int, score: Score) -> dict[int, EpochRecord]:
    found = {}
    for epoch in range(1, max(count, len(score.val)) + 1):
        value = score.val[min(epoch, len(score.val)) - 1]
        loss = score.train[min(epoch, len(score.train)) - 1]
        metrics = {"train_loss": loss, "val_accuracy": value, "val_loss": 1 - value}
        found[epoch] = EpochRecord(
            trajectory=trajectory, epoch=epoch, metrics=metrics, seconds={"train": 2.0, "evaluate": 9.0}
        )
    return found


def _final(identity: str, evaluation: str, score: Score) -> FinalRecord:
    right = (np.arange(100) < 100 * score.accuracy).astype(np.float32)
    return FinalRecord(
        identity=identity,
        evaluation=evaluation,
        metrics={"accuracy": score.accuracy, "loss": score.loss},
        outcomes={"accuracy": right, "loss": np.full(100, score.loss, np.float32)},
        seconds=0.1,
    )


@pytest.fixture
def bench(tiny_study: Make, tiny_data_dir: Path) -> Callable[..., Bench]:
    def make(**changes: Any) -> Bench:
        study = tiny_study(**{"seeds": SEEDS, **changes})
        return Bench(study, make_plan(study, tiny_data_dir))

    return make


def levels(**means: float) -> Outcomes:
    """Accuracies around a mean for each arm, with noise that pairing does not remove; loss is 1 - accuracy."""

    def outcome(arm: str, setting: Mapping[str, float], seed: int) -> Score:
        name = arm.replace("-", "_")
        noise = NOISE[seed] if arm.startswith("pool") else 0.0
        value = means[name] + noise
        return Score(accuracy=value, loss=1 - value, val=(value,))

    return outcome


@pytest.mark.parametrize(
    ("pool", "margin", "expected"),
    [(0.9, 0.05, "a"), (0.7, 0.05, "b"), (0.8, 0.05, "same"), (0.8005, 0.0001, "undecided")],
)
def test_a_pair_is_decided_by_the_difference_of_its_arms(
    bench: Callable[..., Bench], pool: float, margin: float, expected: str
) -> None:
    item = bench(margin=margin).verdict(levels(pool=pool, strided=0.8)).primary
    assert item.verdict == expected
    assert item.difference == pytest.approx(pool - 0.8)
    assert (item.a, item.b, item.metric, item.kind, item.seeds) == ("pool", "strided", "accuracy", "pair", SEEDS)


def test_less_is_better_where_the_goal_is_min(bench: Callable[..., Bench]) -> None:
    verdict = bench(metric="loss").verdict(levels(pool=0.9, strided=0.8))
    assert verdict.metric.goal == "min"
    assert verdict.primary.difference == pytest.approx(-0.1)  # in the metric's own unit
    assert verdict.primary.verdict == "a"
    assert verdict.primary.p_a_better == 1
    assert re.search(r"pool is better.*loss -0\.1000", verdict.answer)


def test_a_comparison_may_have_a_metric_and_a_margin_of_its_own(bench: Callable[..., Bench]) -> None:
    comparisons = [PAIR, {"name": "by loss", "a": "pool", "b": "strided", "metric": "loss", "margin": 0.5}]
    first, second = bench(comparisons=comparisons).verdict(levels(pool=0.9, strided=0.8)).comparisons
    assert (first.verdict, first.metric) == ("a", "accuracy")
    assert (second.verdict, second.metric) == ("same", "loss")
    assert re.search(r"same within ±0\.5.*loss -0\.1000", second.sentence)


@pytest.mark.parametrize(("metric", "sign"), [("accuracy", 1), ("loss", -1)])
@pytest.mark.parametrize(("shuffled", "expected"), [(0.80, "a"), (0.99, "b")])
def test_an_interaction_is_the_advantage_of_the_first_pair_over_that_of_the_second(
    bench: Callable[..., Bench], metric: str, sign: int, shuffled: float, expected: str
) -> None:
    comparisons = [PAIR, bad_studies.INTERACTION]
    verdict = bench(metric=metric, arms=FOUR, comparisons=comparisons).verdict(
        levels(pool=0.9, strided=0.8, pool_2=shuffled, strided_2=0.8)
    )
    item = verdict.comparisons[1]
    assert item.kind == "interaction"
    assert item.verdict == expected
    assert item.difference == pytest.approx(sign * ((0.9 - 0.8) - (shuffled - 0.8)))
    size = "larger" if expected == "a" else "smaller"
    assert f"{size} than" in item.sentence
    assert [side.arm for side in item.sides] == ["pool", "strided", "pool-2", "strided-2"]


def test_an_interaction_pairs_by_seed_and_needs_all_four_arms(bench: Callable[..., Bench]) -> None:
    whole = levels(pool=0.9, strided=0.8, pool_2=0.8, strided_2=0.8)
    holes = {"pool": 0, "strided": 1, "pool-2": 2, "strided-2": 3}
    verdict = bench(arms=FOUR, comparisons=[PAIR, bad_studies.INTERACTION]).verdict(
        lambda arm, setting, seed: None if holes[arm] == seed else whole(arm, setting, seed)
    )
    assert [item.seeds for item in verdict.comparisons] == [SEEDS - 2, SEEDS - 4]
    assert [arm.missing for arm in verdict.designs] == [1, 1, 1, 1]


def by_rate(**means: float) -> Outcomes:
    """The same for every arm: accuracies by learning rate, on validation as on test."""

    def outcome(arm: str, setting: Mapping[str, float], seed: int) -> Score:
        value = means[f"lr{setting['lr']:g}".replace(".", "_")] + NOISE[seed] * (1 + 10 * setting["lr"])
        return Score(accuracy=value, val=(value,))

    return outcome


def test_a_best_setting_is_compared_with_each_other_setting(bench: Callable[..., Bench]) -> None:
    question = {**bad_studies.SETTING, "name": "best rate", "expect": {"lr": 0.01}}
    grid = {"fixed": None, "grid": {"lr": [0.1, 0.01, 0.001]}}
    verdict = bench(**grid, comparisons=[PAIR, question]).verdict(by_rate(lr0_1=0.7, lr0_01=0.9, lr0_001=0.8))
    _, first, second = verdict.comparisons
    assert (first.a, first.b) == ("pool at lr=0.01", "pool at lr=0.1")
    assert (second.a, second.b) == ("pool at lr=0.01", "pool at lr=0.001")
    assert {first.group, second.group} == {"best rate"}
    assert first.name.startswith("best rate: ")
    assert first.name != second.name
    assert [side.setting for side in first.sides] == [{"lr": 0.01}, {"lr": 0.1}]
    assert [first.verdict, second.verdict] == ["a", "a"]
    assert [first.difference, second.difference] == [pytest.approx(0.2), pytest.approx(0.1)]


def test_between_two_settings_the_comparison_keeps_its_name(bench: Callable[..., Bench]) -> None:
    verdict = bench(**TUNED, comparisons=[{**bad_studies.SETTING, "name": "best"}]).verdict(
        by_rate(lr0_1=0.7, lr0_01=0.9)
    )
    (item,) = verdict.comparisons
    assert (item.name, item.group, item.verdict) == ("best", "best", "b")
    assert verdict.answer.startswith("pool at lr=0.01 is better")


def test_the_expected_setting_may_be_written_in_another_order(bench: Callable[..., Bench]) -> None:
    question = {**bad_studies.SETTING, "expect": {"dropout": 0.5, "lr": 0.1}}
    figure = {**bad_studies.REPORTED, "setting": {"dropout": 0.5, "lr": 0.1}}
    verdict = bench(
        fixed=None, grid={"lr": [0.1, 0.01], "dropout": [0.5]}, comparisons=[question], reported=[figure]
    ).verdict(by_rate(lr0_1=0.9, lr0_01=0.7))
    assert verdict.primary.verdict == "a"
    assert verdict.reported[0].seeds == SEEDS


def test_rates_that_differ_in_the_seventh_digit_are_two_settings(bench: Callable[..., Bench]) -> None:
    made = bench(fixed=None, grid={"lr": [0.1234567, 0.1234568]})
    verdict = made.verdict(lambda arm, setting, seed: Score(accuracy=0.9 if setting["lr"] == 0.1234568 else 0.8))
    assert len(made.plan.runs) == 2 * 2 * SEEDS
    assert verdict.planned == verdict.finished == 2 * 2 * SEEDS


def test_the_setting_is_chosen_on_validation_alone(bench: Callable[..., Bench]) -> None:
    """The test set prefers 0.01, validation 0.1: the arm is shown and compared at 0.1."""

    def outcome(arm: str, setting: Mapping[str, float], seed: int) -> Score:
        first = setting["lr"] == 0.1
        return Score(accuracy=(0.6 if first else 0.99) + NOISE[seed], val=(0.1, 0.9) if first else (0.99, 0.8))

    verdict = bench(**TUNED, budget={"epochs": 2, "batch": 8}).verdict(outcome)
    for arm in verdict.designs:
        assert arm.setting == {"lr": 0.1}
        assert arm.mean == pytest.approx(0.6)
    assert verdict.primary.difference == 0


def test_the_chosen_setting_may_differ_by_arm(bench: Callable[..., Bench]) -> None:
    def outcome(arm: str, setting: Mapping[str, float], seed: int) -> Score:
        best = (setting["lr"] == 0.1) == (arm == "pool")
        return Score(accuracy=0.9 if best else 0.2, val=(0.9 if best else 0.2,))

    verdict = bench(**TUNED).verdict(outcome)
    assert [arm.setting for arm in verdict.designs] == [{"lr": 0.1}, {"lr": 0.01}]
    assert [arm.mean for arm in verdict.designs] == [0.9, 0.9]


def test_validation_loss_chooses_the_smaller(bench: Callable[..., Bench]) -> None:
    verdict = bench(**TUNED, metric="loss").verdict(by_rate(lr0_1=0.2, lr0_01=0.9))  # val_loss is 1 - val
    assert [arm.setting for arm in verdict.designs] == [{"lr": 0.01}, {"lr": 0.01}]


def test_a_setting_that_fails_less_is_chosen_before_a_better_one(bench: Callable[..., Bench]) -> None:
    scores = by_rate(lr0_1=0.99, lr0_01=0.5)
    verdict = bench(**TUNED).verdict(
        lambda arm, setting, seed: "diverged" if setting["lr"] == 0.1 and seed == 7 else scores(arm, setting, seed)
    )
    assert all(arm.setting == {"lr": 0.01} for arm in verdict.designs)


def test_a_failed_run_is_counted_and_its_seed_left_out(bench: Callable[..., Bench]) -> None:
    scores = levels(pool=0.9, strided=0.8)
    endings: dict[tuple[str, int], Outcome] = {
        ("strided", 0): "diverged", ("strided", 3): "failed", ("strided", 5): None
    }  # fmt: skip
    verdict = bench().verdict(lambda arm, setting, seed: endings.get((arm, seed), scores(arm, setting, seed)))
    pool, strided = verdict.designs
    assert (pool.seeds, pool.failed, pool.missing) == (8, 0, 0)
    assert (strided.seeds, strided.failed, strided.missing) == (5, 2, 1)
    assert verdict.primary.seeds == 5
    assert (verdict.planned, verdict.finished) == (16, 15)
    assert any(line.startswith("strided: 2 of 8 runs") for line in verdict.warnings)
    assert not any(line.startswith("pool:") for line in verdict.warnings)


@pytest.mark.parametrize("loss", [math.inf, math.nan])
def test_a_run_that_ended_with_an_endless_loss_counts_as_failed(bench: Callable[..., Bench], loss: float) -> None:
    scores = levels(pool=0.9, strided=0.8)
    figure = {**bad_studies.REPORTED, "metric": "loss"}
    verdict = bench(metric="loss", reported=[figure]).verdict(
        lambda *run: Score(loss=loss) if run[0] == "pool" and run[2] == 0 else scores(*run)
    )
    pool = verdict.designs[0]
    assert (pool.seeds, pool.failed, pool.missing) == (7, 1, 0)
    assert verdict.primary.seeds == verdict.reported[0].seeds == 7
    assert any(line.startswith("pool: 1 of 8 runs") for line in verdict.warnings)


def test_an_arm_that_never_finished_has_no_numbers(bench: Callable[..., Bench]) -> None:
    verdict = bench().verdict(lambda arm, setting, seed: Score() if arm == "pool" else "diverged")
    strided = verdict.designs[1]
    assert (strided.seeds, strided.failed) == (0, SEEDS)
    lost = bench(seeds=2).verdict(lambda arm, setting, seed: "failed" if arm == "strided" else Score())
    won = bench(seeds=2).verdict(lambda arm, setting, seed: Score())
    assert not any("--seeds" in line for line in lost.warnings)  # no seed would help
    assert any("--seeds" in line for line in won.warnings)
    assert strided.mean is strided.sd is strided.low is strided.high is strided.train_seconds is None
    assert verdict.primary.verdict == "undecided"
    assert verdict.primary.seeds_needed is None
    assert "every run of a side diverged or failed" in verdict.answer
    assert "would decide" not in verdict.answer
    assert any(f"strided: all of its {SEEDS} runs" in line for line in verdict.warnings)


def test_without_records_everything_is_undecided(bench: Callable[..., Bench]) -> None:
    verdict = bench(claims=[bad_studies.CLAIM], **TUNED).verdict(lambda arm, setting, seed: None)
    assert verdict.finished == 0
    assert [arm.missing for arm in verdict.designs] == [SEEDS, SEEDS]
    assert verdict.primary.verdict == "undecided"
    assert verdict.claims[0].verdict == "not run here"


def test_an_arm_has_mean_spread_interval_and_training_time(bench: Callable[..., Bench]) -> None:
    pool = bench(budget={"epochs": 3, "batch": 8}).verdict(levels(pool=0.9, strided=0.8)).designs[0]
    sd = float(np.std(NOISE, ddof=1))
    assert pool.mean == pytest.approx(0.9)
    assert pool.sd == pytest.approx(sd)
    half = 2.3646 * sd / np.sqrt(8)  # t at 97.5 % with 7 degrees of freedom
    assert pool.low == pytest.approx(0.9 - half, abs=1e-6)
    assert pool.high == pytest.approx(0.9 + half, abs=1e-6)
    assert pool.train_seconds == 6.0  # three epochs; evaluation is another clock
    assert (pool.parameters or 0) > 200_000


def test_arms_that_differ_in_evaluation_are_scored_by_their_own(bench: Callable[..., Bench]) -> None:
    arms = [POOL, {**POOL, "name": "strided", "evaluation": {"shift": 2}}]
    made = bench(arms=arms)
    verdict = made.verdict(levels(pool=0.9, strided=0.7))
    assert verdict.planned == SEEDS
    assert [arm.mean for arm in verdict.designs] == [pytest.approx(0.9), pytest.approx(0.7)]
    assert verdict.primary.verdict == "a"


def test_a_longer_arm_on_the_same_path_is_read_at_its_own_epoch(bench: Callable[..., Bench]) -> None:
    arms: list[dict[str, Any]] = [POOL, {**POOL, "name": "strided", "epochs_times": 2}]
    figures = [{**bad_studies.REPORTED, "arm": arm["name"], "metric": "val_accuracy"} for arm in arms]
    verdict = bench(arms=arms, reported=figures).verdict(lambda arm, setting, seed: Score(val=(0.3, 0.6)))
    assert [item.mean for item in verdict.reported] == [pytest.approx(0.3), pytest.approx(0.6)]
    assert [arm.train_seconds for arm in verdict.designs] == [2.0, 4.0]


@pytest.mark.parametrize(("value", "inside"), [(0.9, True), (0.907, True), (0.95, False), (0.85, False)])
def test_a_figure_is_inside_when_a_fresh_run_could_give_it(
    bench: Callable[..., Bench], value: float, inside: bool
) -> None:
    verdict = bench(reported=[{**bad_studies.REPORTED, "value": value}]).verdict(levels(pool=0.9, strided=0.8))
    (item,) = verdict.reported
    assert (item.value, item.inside, item.seeds) == (value, inside, SEEDS)
    half = 2.3646 * float(np.std(NOISE, ddof=1)) * np.sqrt(1 + 1 / 8)
    assert item.low == pytest.approx(0.9 - half, abs=1e-5)
    assert item.high == pytest.approx(0.9 + half, abs=1e-5)
    assert item.percentile is not None
    assert (2.5 <= item.percentile <= 97.5) == item.inside
    assert item.below == (0 if item.percentile < 2.5 else SEEDS if item.percentile > 97.5 else item.below)


def test_intervals_end_where_accuracies_do(bench: Callable[..., Bench]) -> None:
    """Of 0.2 and 1.0 against 0.0 and 0.9, t intervals reach far beyond; the mean stays inside."""
    scores = {("pool", 0): 0.2, ("pool", 1): 1.0, ("strided", 0): 0.0, ("strided", 1): 0.9}
    made = bench(seeds=2, reported=[bad_studies.REPORTED])
    verdict = made.verdict(lambda arm, setting, seed: Score(accuracy=scores[arm, seed]))
    assert [(arm.low, arm.high) for arm in verdict.designs] == [(0, 1), (0, 1)]
    assert [(item.low, item.high) for item in verdict.reported] == [(0, 1)]
    worse = made.verdict(lambda arm, setting, seed: Score(accuracy=abs((arm == "pool") - scores["pool", seed])))
    assert (worse.primary.low, worse.primary.high) == (-1, 1)


def test_one_run_says_nothing_about_a_figure(bench: Callable[..., Bench]) -> None:
    scores = levels(pool=0.9, strided=0.8)
    verdict = bench(reported=[bad_studies.REPORTED]).verdict(lambda *run: scores(*run) if run[2] == 0 else None)
    assert verdict.reported[0].mean == pytest.approx(0.904)
    assert verdict.reported[0].inside is None


def test_the_running_training_loss_is_the_mean_over_all_epochs(bench: Callable[..., Bench]) -> None:
    figures = [{**bad_studies.REPORTED, "metric": metric} for metric in ("train_loss_running", "train_loss")]
    made = bench(budget={"epochs": 3, "batch": 8}, reported=figures)
    verdict = made.verdict(lambda arm, setting, seed: Score(train=(0.9, 0.6, 0.3)))
    assert [item.mean for item in verdict.reported] == [pytest.approx(0.6), pytest.approx(0.3)]


ELSEWHERE = [{"data": "octmnist"}, {"protocol": "as-reported"}, {"epochs": 15}]


@pytest.mark.parametrize("made_for", ELSEWHERE, ids=str)
def test_a_figure_for_another_protocol_is_not_shown(bench: Callable[..., Bench], made_for: dict[str, Any]) -> None:
    figures = [bad_studies.REPORTED, {**bad_studies.REPORTED, **made_for, "what": "elsewhere"}]
    verdict = bench(reported=figures).verdict(levels(pool=0.9, strided=0.8))
    assert [item.what for item in verdict.reported] == ["pool"]


def test_a_figure_at_a_setting_that_the_quick_grid_leaves_out_is_not_shown(
    tiny_study: Make, tiny_data_dir: Path
) -> None:
    figures = [{**bad_studies.REPORTED, "setting": {"lr": rate}, "what": str(rate)} for rate in (0.1, 0.01)]
    study = tiny_study(**TUNED, reported=figures, quick={"grid": {"lr": [0.1]}}).quickened()
    verdict = Bench(study, make_plan(study, tiny_data_dir)).verdict(levels(pool=0.9, strided=0.8))
    assert [item.what for item in verdict.reported] == ["0.1"]


@pytest.mark.parametrize(
    ("pool", "expect", "expected"),
    [
        (0.9, "a", "holds"),
        (0.7, "a", "fails"),
        (0.8, "a", "fails"),  # the same within the margin
        (0.7, "b", "holds"),
        (0.8, "same", "holds"),
        (0.9, "same", "fails"),
    ],
)
def test_a_claim_is_decided_by_its_comparison(
    bench: Callable[..., Bench], pool: float, expect: str, expected: str
) -> None:
    claim = {**bad_studies.CLAIM, "expect": expect, "source": ["R0", "R1"]}
    (found,) = bench(claims=[claim]).verdict(levels(pool=pool, strided=0.8)).claims
    assert (found.verdict, found.leans, found.source) == (expected, None, ("R0", "R1"))
    assert found.why


def test_a_claim_is_undecided_while_its_comparison_is(bench: Callable[..., Bench]) -> None:
    scores = levels(pool=0.9, strided=0.8)
    verdict = bench(claims=[bad_studies.CLAIM]).verdict(lambda *run: scores(*run) if run[2] < 3 else None)
    assert verdict.claims[0].verdict == "undecided"


@pytest.mark.parametrize("made_for", ELSEWHERE, ids=str)
@pytest.mark.parametrize(("pool", "leans"), [(0.9, "holds"), (0.7, "fails")])
def test_a_claim_for_another_protocol_gets_a_hint_and_never_holds_or_fails(
    bench: Callable[..., Bench], made_for: dict[str, Any], pool: float, leans: str
) -> None:
    claim = {**bad_studies.CLAIM, **made_for}
    (found,) = bench(claims=[claim]).verdict(levels(pool=pool, strided=0.8)).claims
    assert (found.verdict, found.leans) == ("hint", leans)
    assert "The claim is about" in found.why
    assert "pneumoniamnist (protocol audited, 1 epoch)" in found.why
    assert str(*made_for.values()) in found.why


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ({"lr0_1": 0.9, "lr0_01": 0.7, "lr0_001": 0.6}, "holds"),
        ({"lr0_1": 0.8, "lr0_01": 0.9, "lr0_001": 0.6}, "fails"),
    ],
)
def test_a_best_setting_claim_holds_only_when_every_other_setting_loses(
    bench: Callable[..., Bench], rates: dict[str, float], expected: str
) -> None:
    claim = {**bad_studies.CLAIM, "comparison": "best"}
    grid = {"fixed": None, "grid": {"lr": [0.1, 0.01, 0.001]}}
    made = bench(**grid, comparisons=[{**bad_studies.SETTING, "name": "best"}], claims=[claim])
    assert made.verdict(by_rate(**rates)).claims[0].verdict == expected


def test_a_best_setting_claim_is_not_run_here_while_one_setting_is_missing(bench: Callable[..., Bench]) -> None:
    claim = {**bad_studies.CLAIM, "comparison": "best"}
    scores = by_rate(lr0_1=0.9, lr0_01=0.7, lr0_001=0.6)
    made = bench(
        fixed=None,
        grid={"lr": [0.1, 0.01, 0.001]},
        comparisons=[{**bad_studies.SETTING, "name": "best"}],
        claims=[claim],
    )
    verdict = made.verdict(lambda *run: None if run[1]["lr"] == 0.001 else scores(*run))
    assert verdict.claims[0].verdict == "not run here"


def test_the_answer_is_the_primary_comparison_in_words(bench: Callable[..., Bench]) -> None:
    verdict = bench().verdict(levels(pool=0.9, strided=0.8))
    assert verdict.answer == verdict.primary.sentence
    for part in ("pool is better", "+0.1000", "95 % interval +0.097", "8 paired seeds"):
        assert part in verdict.answer


def test_an_undecided_answer_says_how_many_seeds_would_do(bench: Callable[..., Bench]) -> None:
    verdict = bench(seeds=2).verdict(levels(pool=0.9, strided=0.8))
    item = verdict.primary
    assert item.verdict == "undecided"
    assert item.seeds_needed == 4
    assert verdict.answer.startswith("Undecided")
    assert "--seeds 6" in verdict.answer
    (warning,) = [line for line in verdict.warnings if "seeds" in line]  # once, not for every comparison
    assert "at least 6" in warning


def test_seeds_that_were_planned_and_are_not_there_are_missed_by_the_comparison(bench: Callable[..., Bench]) -> None:
    scores = levels(pool=0.9, strided=0.8)
    verdict = bench().verdict(lambda *run: scores(*run) if run[2] < 3 else None)
    assert any(re.search("3 seeds.* 6 needed", line) for line in verdict.warnings)


def test_an_answer_before_the_planned_seeds_are_there_asks_for_no_more(bench: Callable[..., Bench]) -> None:
    scores = levels(pool=0.9, strided=0.8)
    verdict = bench().verdict(lambda *run: scores(*run) if run[2] < 3 else None)
    assert "--seeds" not in verdict.answer


def test_several_comparisons_are_corrected_together(bench: Callable[..., Bench]) -> None:
    comparisons = [PAIR, {"a": "pool", "b": "pool-2"}, {"a": "strided", "b": "strided-2"}]
    means = {"pool": 0.81, "strided": 0.8, "pool_2": 0.809, "strided_2": 0.8}
    verdict = bench(arms=FOUR, comparisons=comparisons, margin=0.0001).verdict(levels(**means))
    alone = bench(margin=0.0001).verdict(levels(**means)).primary
    together = verdict.primary
    assert alone.p == together.p
    assert together.p is not None
    assert alone.p_adjusted == pytest.approx(together.p / 0.9)  # a tenth of the error is kept for later looks
    assert together.p_adjusted == pytest.approx(2 * together.p / 0.9)  # of the three, the second smallest
    assert alone.low is not None
    assert together.low is not None
    assert together.low < alone.low


def test_another_test_set_is_a_second_interval(bench: Callable[..., Bench]) -> None:
    item = bench().verdict(levels(pool=0.9, strided=0.8)).primary
    assert item.examples_low is not None
    assert item.examples_high is not None
    assert item.examples_low < 0.1 < item.examples_high
    assert item.crossed_low is not None
    assert item.crossed_low < item.examples_low  # over seeds and examples together
    assert not item.on_this_test_set


def test_a_difference_that_the_test_set_decides_is_said_to_be_on_this_test_set(bench: Callable[..., Bench]) -> None:
    item = bench(margin=0.001).verdict(levels(pool=0.82, strided=0.8)).primary
    assert item.verdict == "a"
    assert (item.examples_low or 0) < 0  # of 100 test examples
    assert item.on_this_test_set
    assert "on this test set" in item.sentence


def test_lopsided_seeds_widen_one_end_of_the_crossed_interval_not_both(bench: Callable[..., Bench]) -> None:
    def outcome(arm: str, setting: Mapping[str, float], seed: int) -> Score:
        value = 0.5 + (0.1 + 0.01 * seed % 3 + 0.3 * (seed == 1) if arm == "pool" else 0.0)
        return Score(accuracy=value, loss=1 - value, val=(value,))

    item = bench(margin=0.001).verdict(outcome).primary
    assert None not in (item.difference, item.low, item.high, item.examples_low, item.crossed_low)
    assert item.high - item.difference > 2 * (item.difference - item.low)  # type: ignore[operator]
    below = math.hypot(item.difference - item.low, item.difference - item.examples_low)  # type: ignore[operator]
    assert item.crossed_low == pytest.approx(item.difference - below)  # type: ignore[operator]


def test_the_crossed_interval_is_cut_to_what_a_difference_can_be(bench: Callable[..., Bench]) -> None:
    wild = bench(seeds=2).verdict(
        lambda arm, setting, seed: Score(accuracy=0.9 * (seed if arm == "pool" else 1 - seed), loss=0.1, val=(0.5,))
    )
    assert (wild.primary.crossed_low, wild.primary.crossed_high) == (-1.0, 1.0)


def test_an_end_that_holm_cut_at_0_is_no_word_about_the_test_set(bench: Callable[..., Bench]) -> None:
    found = bench().verdict(levels(pool=0.9, strided=0.8)).primary
    cut = found.model_copy(update={"low": 0.0, "crossed_low": -0.01})
    assert not cut.on_this_test_set
    assert cut.model_copy(update={"examples_low": -0.01}).on_this_test_set


def test_the_file_has_the_stable_keys(bench: Callable[..., Bench]) -> None:
    made = bench(claims=[bad_studies.CLAIM], reported=[bad_studies.REPORTED])
    content = json.loads(made.verdict(levels(pool=0.9, strided=0.8)).to_json())
    stable = {
        "": "study question data metric designs comparisons reported claims",
        "metric": "name goal split",
        "designs": "name parameters flops setting seeds failed mean sd low high train_seconds",
        "comparisons": "a b difference low high p p_adjusted p_a_better verdict seeds seeds_needed",
        "reported": "source what value mean low high inside",
        "claims": "id verdict",
    }
    extras = {
        "": "answer protocol margin seeds planned finished ranking stopping warnings cost",
        "metric": "",
        "designs": "design missing at_edge differences step_ms solo_seconds memory_bytes",
        "comparisons": "name group kind primary sides metric margin p_sign_flip examples_low examples_high crossed_low "
        "crossed_high path sentence flags skewness test runs p_permutation time_ratio time_low time_high",
        "reported": "seeds percentile below",
        "claims": "text source leans why",
    }
    for place, keys in stable.items():
        table = content[place] if place else content
        for entry in table if isinstance(table, list) else [table]:
            assert entry.keys() == {*keys.split(), *extras[place].split()}, place
    assert content["comparisons"][0]["verdict"] in ("a", "b", "same", "undecided")


def test_the_file_is_json_without_nan_whatever_is_missing(bench: Callable[..., Bench]) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    for seeds in range(4):
        scores = levels(pool=0.9, strided=0.8)
        made = bench(claims=[bad_studies.CLAIM], reported=[bad_studies.REPORTED])
        text = made.verdict(lambda *run, n=seeds, scores=scores: scores(*run) if run[2] < n else None).to_json()
        json.loads(text, parse_constant=refuse)


def test_the_file_is_read_as_it_was_written(bench: Callable[..., Bench], tmp_path: Path) -> None:
    claims, figures = [{**bad_studies.CLAIM, "source": ["R0", "R1"]}], [bad_studies.REPORTED]
    verdict = bench(claims=claims, reported=figures).verdict(levels(pool=0.9, strided=0.8))
    (tmp_path / "verdict.json").write_text(verdict.to_json())
    assert Verdict.read(tmp_path) == verdict


def test_a_verdict_is_a_pure_function_of_its_records(bench: Callable[..., Bench]) -> None:
    made = bench(**TUNED)
    verdict = made.verdict(by_rate(lr0_1=0.7, lr0_01=0.9))
    assert make_verdict(made.study, made.plan, made.records) == verdict


# claims that rest on several comparisons


@pytest.mark.parametrize(
    ("accuracy", "loss", "expected"),
    [
        (0.9, 0.1, "holds"),
        (0.9, 0.3, "fails"),  # better by accuracy, worse by loss
        (0.7, 0.1, "fails"),
        (0.9, None, "undecided"),
        (0.7, None, "fails"),  # one that fails is enough
    ],
)
def test_a_claim_may_rest_on_several_comparisons(
    bench: Callable[..., Bench], accuracy: float, loss: float | None, expected: str
) -> None:
    also = {**PAIR, "name": "by loss", "metric": "loss", "margin": 0.001, "primary": False}
    claim = {**bad_studies.CLAIM, "also": ["by loss"]}
    made = bench(comparisons=[{**PAIR, "primary": True}, also], claims=[claim])

    def outcome(arm: str, setting: Mapping[str, float], seed: int) -> Score:
        noise = NOISE[seed]
        if arm != "pool":
            return Score(accuracy=0.8, loss=0.2)
        return Score(accuracy=accuracy + noise, loss=(0.2 + 5 * noise) if loss is None else loss + noise)

    (found,) = made.verdict(outcome).claims
    assert found.verdict == expected
    assert "accuracy" in found.why
    assert "loss" in found.why


def test_a_claim_that_rests_on_an_unknown_comparison_is_refused(bench: Callable[..., Bench]) -> None:
    with pytest.raises(TiebreakError, match=r"claims\[1\]\.also: unknown name 'by los'"):
        bench(claims=[{**bad_studies.CLAIM, "also": ["by los"]}])


def test_a_narrow_finding_between_different_settings_is_a_warning(bench: Callable[..., Bench]) -> None:
    leads = (4, 1, 3, 0, 2, 3, -1, 5)  # of pool, in test examples of 100: p = 0.02

    def outcome(arm: str, setting: Mapping[str, float], seed: int, *, apart: bool) -> Score:
        best = 0.1 if arm == "pool" or not apart else 0.01
        lead = leads[seed] if arm == "pool" else 0
        return Score(val=(0.9 if setting["lr"] == best else 0.5,), accuracy=(80 + lead) / 100)

    made = bench(seeds=8, margin=0.001, fixed={}, grid={"lr": [0.1, 0.01]})
    found = made.verdict(lambda *run: outcome(*run, apart=True))
    assert found.primary.verdict == "a"
    assert any("different settings" in line for line in found.warnings)
    alike = made.verdict(lambda *run: outcome(*run, apart=False))
    assert alike.primary.difference == found.primary.difference
    assert not any("different settings" in line for line in alike.warnings)
