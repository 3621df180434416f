"""The four things that a report reads, and how to look scores up in them. What is not there is simply absent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tiebreak import stats
from tiebreak.report import words
from tiebreak.results.record import EpochRecord, Records
from tiebreak.results.verdict import ArmResult, Verdict
from tiebreak.runs import Plan, PlannedArm, run_key
from tiebreak.study import Interaction, Pair, Setting, Study, setting_label

MOST_VALUES = 4  # of one key of provenance


@dataclass(frozen=True, kw_only=True)
class Point:
    """One epoch of a learning curve: the mean over n seeds, and its 95 % t interval where n allows one."""

    epoch: int
    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The two sides of the primary comparison: what they are, their arms' places, and their scores by seed."""

    a: str
    b: str
    places: tuple[int, int]
    scores: tuple[Mapping[int, float], Mapping[int, float]]

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
    """What a report is made of."""

    study: Study
    plan: Plan
    records: Records
    verdict: Verdict

    @cached_property
    def trajectories(self) -> dict[str, str]:
        """The trajectory of every planned run: each is a hash, computed once."""
        return {identity: run.trajectory for identity, run in self.plan.runs.items()}

    def index(self, arm: str) -> int | None:
        """The arm's place in the study, which decides its colour everywhere; None for what is not an arm."""
        return next((index for index, item in enumerate(self.study.arms) if item.name == arm), None)

    def result(self, arm: str) -> ArmResult | None:
        """The arm's line of the verdict."""
        return next((item for item in self.verdict.designs if item.name == arm), None)

    def test_scores(self, arm: str, metric: str, setting: Setting | None = None) -> dict[int, float]:
        """Score on the test split by seed, at the given or else at the chosen setting."""
        planned, result = self._planned(arm), self.result(arm)
        where = setting if setting is not None else result.setting if result else {}
        scores: dict[int, float] = {}
        for seed, identity in self._identities(arm, where):
            final = self.records.finals.get(identity, {}).get(planned.evaluation if planned else "")
            if final is not None:
                scores[seed] = final.metrics.get(metric, math.nan)
        return _usable(scores)

    def validation_scores(self, arm: str, setting: Setting) -> dict[int, float]:
        """Score on the validation split after the last epoch by seed, of the runs that finished."""
        scores: dict[int, float] = {}
        for seed, identity in self._identities(arm, setting):
            epochs = self._epochs(identity)
            if self.status(identity) == "done" and epochs:
                scores[seed] = epochs[max(epochs)].metrics.get(f"val_{self.study.metric}", math.nan)
        return _usable(scores)

    def curve(self, arm: str, key: str) -> list[Point]:
        """A metric per epoch at the chosen setting, over the runs that neither diverged nor failed."""
        result = self.result(arm)
        by_epoch: dict[int, dict[int, float]] = {}
        for seed, identity in self._identities(arm, result.setting if result else {}):
            if self.status(identity) in ("done", "missing"):
                for epoch, record in self._epochs(identity).items():
                    by_epoch.setdefault(epoch, {})[seed] = record.metrics.get(key, math.nan)
        return [
            _point(epoch, list(scores.values()))
            for epoch, scores in ((epoch, _usable(by_epoch[epoch])) for epoch in sorted(by_epoch))
            if scores
        ]

    def sides(self) -> Sides:
        """The primary comparison by seed.

        An interaction's sides are two differences; a question about settings has no two sides, hence no scores.
        """
        primary = self.verdict.primary
        asked = next((item for item in self.study.comparisons if item.name == primary.name), None)
        arms = asked.arms() if isinstance(asked, Pair | Interaction) else ()
        scores = [self.test_scores(arm, primary.metric) for arm in arms]
        if len(arms) == 2:
            places = [self.index(arm) or 0 for arm in arms]
            return Sides(a=arms[0], b=arms[1], places=(places[0], places[1]), scores=(scores[0], scores[1]))
        if len(arms) == 4:
            halves = (_minus(scores[0], scores[1]), _minus(scores[2], scores[3]))
            return Sides(a=f"{arms[0]} - {arms[1]}", b=f"{arms[2]} - {arms[3]}", places=(0, 1), scores=halves)
        return Sides(a=primary.a, b=primary.b, places=(0, 1), scores=({}, {}))

    def status(self, identity: str) -> str:
        """`done`, `diverged`, `failed` or `missing`."""
        record = self.records.runs.get(identity)
        return record.status if record is not None else "missing"

    def train_seconds(self) -> float:
        """Training time of everything recorded, shared runs counted once, without evaluation and checkpoints."""
        longest: dict[str, int] = {}
        for identity, trajectory in self.trajectories.items():
            longest[trajectory] = max(self.plan.runs[identity].epochs, longest.get(trajectory, 0))
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
            for key, identity in arm.runs.items():
                setting, _, seed = key.rpartition("/")
                found = self._trouble(arm, setting, identity)
                if found is not None:
                    seeds.setdefault((arm.name, setting, *found), []).append(int(seed))
        return [
            Unfinished(arm=arm, setting=setting, seeds=words.ranges(some), status=status, reason=reason)
            for (arm, setting, status, reason), some in seeds.items()
        ]

    def versions(self) -> list[tuple[str, str]]:
        """What the runs were made with: every key of their provenance, with all its values."""
        values: dict[str, Counter[str]] = {}
        for identity in self.plan.runs:
            record = self.records.runs.get(identity)
            for key, value in record.provenance.items() if record is not None else ():
                values.setdefault(key, Counter())[value] += 1
        return [(key, _joined(values[key])) for key in sorted(values)]

    def _trouble(self, arm: PlannedArm, setting: str, identity: str) -> tuple[str, str] | None:
        status, total = self.status(identity), self.plan.runs[identity].epochs
        if status in ("diverged", "failed"):
            record = self.records.runs[identity]
            return status, f"epoch {record.epoch} of {total}: {record.reason or 'no reason recorded'}"
        if status == "missing":
            trained = len(self._epochs(identity))
            return status, f"{trained} of {total} epochs trained" if trained else "not started"
        result = self.result(arm.name)
        tested = arm.evaluation in self.records.finals.get(identity, {})
        if tested or result is None or setting_label(result.setting) != setting:
            return None
        return "not tested", "trained, but the test split is not evaluated yet"

    def _planned(self, arm: str) -> PlannedArm | None:
        return next((item for item in self.plan.arms if item.name == arm), None)

    def _identities(self, arm: str, setting: Setting) -> Iterator[tuple[int, str]]:
        planned = self._planned(arm)
        for seed in range(self.study.seeds) if planned else ():
            identity = planned.runs.get(run_key(setting, seed)) if planned else None
            if identity is not None:
                yield seed, identity

    def _epochs(self, identity: str) -> Mapping[int, EpochRecord]:
        recorded = self.records.epochs.get(self.trajectories[identity], {})
        last = self.plan.runs[identity].epochs
        return {epoch: record for epoch, record in recorded.items() if epoch <= last}


def _usable(scores: Mapping[int, float]) -> dict[int, float]:
    """Without what is no number, or too large to be squared."""
    return {key: value for key, value in scores.items() if abs(value) < stats.LARGEST}


def _minus(a: Mapping[int, float], b: Mapping[int, float]) -> dict[int, float]:
    return {seed: a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())}


def _point(epoch: int, scores: list[float]) -> Point:
    found = stats.estimate(scores)
    mean = found.mean if found.mean is not None else math.nan
    low, high = (mean if end is None else end for end in (found.low, found.high))
    return Point(epoch=epoch, mean=mean, low=low, high=high, n=found.n)


def _joined(values: Iterable[str] | Counter[str]) -> str:
    counted = Counter(values)
    if len(counted) == 1:
        return next(iter(counted))
    shown = [f"{value} ({words.number_of(many, 'run')})" for value, many in counted.most_common(MOST_VALUES)]
    left = len(counted) - len(shown)
    return ", ".join(shown) + (f", and {left} more" if left else "")
