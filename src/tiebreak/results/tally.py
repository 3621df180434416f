"""A study's plan read together with its records: the scores, the failed runs, the setting that validation chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

import numpy as np
import numpy.typing as npt

from tiebreak.plan.runs import Plan, PlannedArm
from tiebreak.results.correlation import LEAST_POINTS, least_spearman
from tiebreak.results.record import Records, StepTimes
from tiebreak.study.program_keys import PROGRAM
from tiebreak.study.schema import Setting, Study, setting_label

Scores = dict[int, float]  # seed -> score


@dataclass(frozen=True)
class Tally:
    """Looks up the results of a study's arms by setting and seed."""

    study: Study
    plan: Plan
    records: Records
    _runs: dict[tuple[str, str], list[tuple[int, str]]] = field(default_factory=dict, repr=False, compare=False)
    _chosen: dict[str, dict[str, float]] = field(default_factory=dict, repr=False, compare=False)
    _scores: dict[tuple[str, str, str], Scores] = field(default_factory=dict, repr=False, compare=False)
    _places: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def _arms(self) -> dict[str, PlannedArm]:
        return {arm.name: arm for arm in self.plan.arms}

    def runs(self, arm: str, setting: Setting) -> list[tuple[int, str]]:
        """Every seed of an arm at a setting, with the identity of its run."""
        key = arm, setting_label(setting)
        if key not in self._runs:
            planned = self._arms[arm]
            self._runs[key] = [(seed, planned.run(setting, seed)) for seed in range(self.study.seeds)]
        return self._runs[key]

    def scores(self, arm: str, setting: Setting, metric: str) -> Scores:
        """The metric of every finished run, by seed: a test metric, or `val_…` and `train_loss…` of the
        epoch whose weights were tested: the last one, or with early stopping the best."""
        key = arm, setting_label(setting), metric  # every comparison of an arm asks again
        if key not in self._scores:
            values = {seed: self._score(arm, identity, metric) for seed, identity in self.runs(arm, setting)}
            self._scores[key] = {seed: value for seed, value in values.items() if value is not None}
        return dict(self._scores[key])

    def known_scores(self, arm: str, setting: Setting, metric: str) -> Scores:
        """The same without the runs that did not record this metric, such as those of an older version."""
        found = {}
        for seed, identity in self.runs(arm, setting):
            try:
                value = self._score(arm, identity, metric)
            except KeyError:
                continue
            if value is not None:
                found[seed] = value
        return found

    def _score(self, arm: str, identity: str, metric: str) -> float | None:
        record = self.records.runs.get(identity)
        if record is None or record.status != "done":
            return None
        run = self.plan.runs[identity]
        final = self.records.finals.get(identity, {}).get(self._arms[arm].evaluation)
        if run.task == PROGRAM:  # it gives its scores at the end, those on validation too
            return final.metrics.get(metric) if final is not None else None
        if not metric.startswith(("val_", "train_")):
            return final.metrics[metric] if final is not None else None
        epochs = self.records.epochs[run.trajectory]
        if metric == "train_loss_running":  # as the reports plotted it: the mean over all epochs so far
            seen = range(1, record.evaluated_epoch + 1)
            return float(np.mean([epochs[epoch].metrics["train_loss"] for epoch in seen]))
        return epochs[record.evaluated_epoch].metrics[metric]

    def outcomes(self, arm: str, setting: Setting, metric: str) -> dict[int, npt.NDArray[np.float32]]:
        """The metric of every test example [E] alone, or another stored outcome of that name, by seed."""
        found, evaluation = {}, self._arms[arm].evaluation
        identities = dict(self.runs(arm, setting))
        for seed in self.scores(arm, setting, self.study.metric):
            final = self.records.finals.get(identities[seed], {}).get(evaluation)
            if final is not None and metric in final.outcomes:
                found[seed] = final.outcomes[metric]
        return found

    def agreement(self, arm: str, setting: Setting, metrics: Sequence[str]) -> Scores:
        """The least rank correlation of two of these metrics over the epochs of a finished run, by seed.

        On validation data. Spearman's; 0 where a metric never changes; none below three epochs.
        """
        found = {}
        for seed in self.scores(arm, setting, self.study.metric):
            run = self.plan.runs[self._arms[arm].run(setting, seed)]
            epochs = self.records.epochs[run.trajectory]
            trained = range(1, self.records.runs[run.identity].epoch + 1)
            values = [[epochs[epoch].metrics[f"val_{name}"] for name in metrics] for epoch in trained]
            if len(values) >= LEAST_POINTS:
                found[seed] = least_spearman(np.array(values, dtype=np.float64))
        return found

    def failed(self, arm: str, setting: Setting) -> int:
        """How many runs diverged or failed."""
        found = (self.records.runs.get(identity) for _, identity in self.runs(arm, setting))
        return sum(record is not None and record.status in ("diverged", "failed") for record in found)

    def status(self, arm: str, setting: Setting, seed: int) -> str:
        """`done`, `diverged`, `failed` or `missing`."""
        record = self.records.runs.get(self._arms[arm].run(setting, seed))
        return record.status if record is not None else "missing"

    def chosen(self, arm: str) -> dict[str, float]:
        """The setting with the fewest failed runs and, among those, the best mean on validation. The test set
        plays no part. A setting without results, or with one that is not finite, is the last choice."""
        if arm in self._chosen:
            return self._chosen[arm]
        metric, goal = f"val_{self.study.metric}", self.study.goal()

        def rank(setting: Mapping[str, float]) -> tuple[bool, int, float]:
            values = list(self.scores(arm, setting, metric).values())
            unknown = not values or not np.isfinite(values).all()
            mean = 0.0 if unknown else float(np.mean(values))
            lost = self.failed(arm, setting)
            if self.study.task == PROGRAM:  # a crash says nothing about the setting, unless most runs crash
                ended = [self.status(arm, setting, seed) for seed in range(self.study.seeds)]
                unknown, lost = unknown or ended.count("failed") > len(ended) / 2, ended.count("diverged")
            return unknown, lost, -mean if goal == "max" else mean

        self._chosen[arm] = min(self.study.settings(arm), key=rank)
        return self._chosen[arm]

    def step_ms(self, arm: str, setting: Setting) -> float | None:
        """A training step of one run, timed alone before training; None where that was not done on the runs' device."""
        if (times := self.step_times(arm, setting)) is not None and times.ms:
            return median(times.ms)
        choice = self.records.choices.get(self._trained_on(arm, setting))
        return choice.loop_ms if choice is not None else None

    def step_times(self, arm: str, setting: Setting) -> StepTimes | None:
        """Steps of one run, timed in turns with the other arms; None where that was not done on the runs' device."""
        return self.records.step_times.get(self._trained_on(arm, setting))

    def _trained_on(self, arm: str, setting: Setting) -> tuple[str, str]:
        """The cohort and the device of the arm's runs at a setting; empty where they have several or none."""
        key = arm, setting_label(setting)  # a cohort's name is a hash, and every comparison of an arm asks again
        if key not in self._places:
            found = {
                (self.plan.runs[identity].cohort, self.records.runs[identity].provenance.get("device", ""))
                for _, identity in self.runs(arm, setting)
                if identity in self.records.runs
            }
            self._places[key] = found.pop() if len(found) == 1 else ("", "")
        return self._places[key]

    def train_seconds(self, arm: str, setting: Setting) -> float | None:
        """The mean training clock of a finished run: no evaluation, no checkpoints."""
        totals = []
        for seed in self.scores(arm, setting, self.study.metric):
            run = self.plan.runs[self._arms[arm].run(setting, seed)]
            epochs = self.records.epochs[run.trajectory]
            trained = range(1, self.records.runs[run.identity].epoch + 1)
            totals.append(sum(epochs[epoch].seconds["train"] for epoch in trained))
        return float(np.mean(totals)) if totals else None
