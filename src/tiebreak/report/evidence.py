"""The input of a report: study, plan, records and verdict, with lookups by arm. What was not recorded is absent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tiebreak.plan.runs import Plan, PlannedArm, Run, run_key
from tiebreak.report import formatting
from tiebreak.report.training_speed import SPEED
from tiebreak.results.record import EpochRecord, Records
from tiebreak.results.tally import Tally
from tiebreak.study.program_keys import PROGRAM
from tiebreak.study.schema import Setting, Study, setting_label
from tiebreak.text import number_of
from tiebreak.verdict import ranges, statistics
from tiebreak.verdict.model import ArmResult, ComparisonResult, Verdict
from tiebreak.verdict.sides import arm_scores, paired_ranges, paired_scores, usable_scores

MOST_VALUES = 4  # of one key of provenance


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point of a curve: the mean over n seeds there, and its 95 % t interval where n allows one."""

    x: float
    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The two sides of a comparison, seed by seed: a name, the arm's place in the study and the scores of each."""

    names: tuple[str, str]
    places: tuple[int, int]  # they decide the colours
    scores: tuple[Mapping[int, float], Mapping[int, float]]
    differences: bool = False  # the scores of an interaction are differences themselves
    limits: tuple[ranges.Range, ranges.Range] = (ranges.ANYTHING, ranges.ANYTHING)  # the values that scores can take

    def format_score(self, score: float | None) -> str:
        """A score of either side, for a table."""
        return formatting.signed(score) if self.differences else formatting.score(score)

    @property
    def pairs(self) -> dict[int, tuple[float, float]]:
        """Both scores of every seed that has both."""
        a, b = self.scores
        return {seed: (a[seed], b[seed]) for seed in sorted(a.keys() & b.keys())}


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """Runs of one arm and setting that have no result, and why."""

    arm: str
    setting: str
    seeds: str
    status: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The input of a report: a study, its plan, its records and the verdict on them."""

    study: Study
    plan: Plan
    records: Records
    verdict: Verdict

    @cached_property
    def tally(self) -> Tally:
        """The scores by arm, setting and seed."""
        return Tally(self.study, self.plan, self.records)

    @cached_property
    def trajectories(self) -> dict[str, str]:
        """The trajectory of every planned run: each is a hash, computed once."""
        return {identity: run.trajectory for identity, run in self.plan.runs.items()}

    @cached_property
    def shared(self) -> dict[str, str]:
        """Arms that have no runs of their own, each with the arm whose runs they are: the one evaluated by default."""
        groups: dict[frozenset[str], list[PlannedArm]] = {}
        for arm in self.plan.arms:
            groups.setdefault(frozenset(arm.runs.values()), []).append(arm)
        found = {}
        for arms in groups.values():
            first = next((arm for arm in arms if arm.evaluation == "default"), arms[0])
            found.update({arm.name: first.name for arm in arms if arm is not first})
        return found

    def arms_with_runs(self) -> list[tuple[int, str]]:
        """The arms that have runs of their own, with their places in the study."""
        return [(index, arm.name) for index, arm in enumerate(self.study.arms) if arm.name not in self.shared]

    def primary_arms(self) -> list[str]:
        """The arms of the primary comparison."""
        return next((list(dict.fromkeys(item.arms())) for item in self.study.comparisons if item.primary), [])

    def index(self, arm: str) -> int | None:
        """The arm's place in the study, which decides its colour everywhere; None for what is not an arm."""
        return next((index for index, item in enumerate(self.study.arms) if item.name == arm), None)

    def result(self, arm: str) -> ArmResult | None:
        """The arm's line of the verdict."""
        return next((item for item in self.verdict.designs if item.name == arm), None)

    def scores(self, arm: str, setting: Setting | None, metric: str) -> dict[int, float]:
        """A metric by seed as the verdict sees it; nothing for an arm or a setting that was not planned."""
        planned = next((item for item in self.plan.arms if item.name == arm), None)
        if planned is None or setting is None or run_key(setting, 0) not in planned.runs:
            return {}
        return arm_scores(self.tally, arm, setting, metric)

    def chosen(self, arm: str) -> Setting | None:
        """The setting that the verdict shows the arm at."""
        result = self.result(arm)
        return result.setting if result is not None else None

    def curve(self, arm: str, key: str) -> list[Point]:
        """A metric per epoch at the chosen setting, over the runs that neither diverged nor failed."""
        by_epoch: dict[int, dict[int, float]] = {}
        for seed, identity in self.identities(arm):
            if self.status(identity) in ("done", "missing"):
                for epoch, record in self.epochs(identity).items():
                    by_epoch.setdefault(epoch, {})[seed] = record.metrics.get(key, math.nan)
        return [
            point(epoch, list(scores.values()), ranges.range_of(key, self.study.task))
            for epoch, scores in ((epoch, usable_scores(by_epoch[epoch])) for epoch in sorted(by_epoch))
            if scores
        ]

    def sides(self, item: ComparisonResult) -> Sides:
        """A comparison by seed. The sides of an interaction are two differences, those of a setting one arm twice."""
        places = [self.index(side.arm) or 0 for side in item.sides]
        return Sides(
            names=item.side_names,
            places=(places[0], places[len(places) // 2]),
            scores=paired_scores(self.tally, item.sides),
            differences=item.kind == "interaction",
            limits=paired_ranges(item.sides, self.study.task),
        )

    def status(self, identity: str) -> str:
        """`done`, `diverged`, `failed` or `missing`."""
        record = self.records.runs.get(identity)
        return record.status if record is not None else "missing"

    def identities(self, arm: str) -> Iterator[tuple[int, str]]:
        """The arm's runs at its chosen setting, by seed."""
        planned = next((item for item in self.plan.arms if item.name == arm), None)
        setting = self.chosen(arm)
        if planned is not None and setting is not None:
            keys = {seed: run_key(setting, seed) for seed in range(self.study.seeds)}
            yield from ((seed, planned.runs[key]) for seed, key in keys.items() if key in planned.runs)

    def train_seconds(self) -> float:
        """Training time of everything recorded, shared runs counted once, without evaluation and checkpoints."""
        longest: dict[str, float] = {}
        for identity, trajectory in self.trajectories.items():
            longest[trajectory] = max(self.plan.runs[identity].most_epochs, longest.get(trajectory, 0))
        return sum(
            record.seconds.get("train", 0.0)
            for trajectory, last in longest.items()
            for epoch, record in self.records.epochs.get(trajectory, {}).items()
            if epoch <= last
        )

    def unfinished(self) -> list[Unfinished]:
        """Every planned run without a result: one line for each that diverged or failed, the others joined."""
        seeds: dict[tuple[str, str, str, str], list[int]] = {}
        for arm in self.plan.arms:
            for identity in arm.runs.values():
                run = self.plan.runs[identity]
                found = self._problem(arm, run)
                if found is not None and (found[0] == "not tested" or arm.name not in self.shared):
                    seeds.setdefault((arm.name, setting_label(run.setting), *found), []).append(run.seed)
        return [
            Unfinished(arm=arm, setting=setting, seeds=formatting.number_ranges(some), status=status, reason=reason)
            for (arm, setting, status, reason), some in seeds.items()
        ]

    def versions(self) -> list[tuple[str, str]]:
        """What the runs were made with: every key of their provenance but the speed, with all its values."""
        values: dict[str, Counter[str]] = {}
        for identity in self.plan.runs:
            record = self.records.runs.get(identity)
            for key, value in record.provenance.items() if record is not None else ():
                if key not in SPEED:
                    values.setdefault(key, Counter())[value] += 1
        return [(key, _joined(values[key])) for key in sorted(values)]

    def _problem(self, arm: PlannedArm, run: Run) -> tuple[str, str] | None:
        """Why a run has no result: its status and the reason."""
        status, total = self.status(run.identity), run.epochs
        if status in ("diverged", "failed"):
            record = self.records.runs[run.identity]
            when = "" if run.task == PROGRAM else f"epoch {record.epoch} of {total}: "
            return status, f"{when}{record.reason or 'no reason recorded'}"
        if status == "missing":
            trained = len(self.epochs(run.identity))
            return status, f"{trained} of {total} epochs trained" if trained else "not started"
        result = self.result(arm.name)
        tested = arm.evaluation in self.records.finals.get(run.identity, {})
        if tested or result is None or setting_label(result.setting) != setting_label(run.setting):
            return None
        return "not tested", "trained, but the test split is not evaluated yet"

    def epochs(self, identity: str) -> Mapping[int, EpochRecord]:
        """What is recorded of a run, by epoch."""
        recorded = self.records.epochs.get(self.trajectories[identity], {})
        last = self.plan.runs[identity].most_epochs
        return {epoch: record for epoch, record in recorded.items() if epoch <= last}


def point(x: float, scores: Sequence[float], within: ranges.Range = ranges.ANYTHING) -> Point:
    """The mean of at least one score, with its interval; below two scores the interval is the mean itself."""
    found = statistics.estimate(scores)
    mean = found.mean if found.mean is not None else math.nan
    low, high = (ranges.cut(end, within) for end in (found.low, found.high))
    low, high = mean if low is None else low, mean if high is None else high
    return Point(x=x, mean=mean, low=low, high=high, n=found.n)


def _joined(values: Iterable[str] | Counter[str]) -> str:
    counted = Counter(values)
    if len(counted) == 1:
        return next(iter(counted))
    shown = [f"{value} ({number_of(many, 'run')})" for value, many in counted.most_common(MOST_VALUES)]
    left = len(counted) - len(shown)
    return ", ".join(shown) + (f", and {left} more" if left else "")
