"""Trains a group of runs to the end: clocks, epoch records, checkpoints, divergence, the final evaluation.

The engine trains and evaluates the epochs: `loop` for one run, `fused` for many as one computation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tiebreak.drive.messages import EpochDone, Job, Message, Note, Progress, RunEnded
from tiebreak.plan.runs import Run, evaluation_key
from tiebreak.results.record import CheckpointRecord, EpochRecord, FinalRecord, RunRecord, Status
from tiebreak.study.registry import Scalar
from tiebreak.tasks.interface import Online, Split
from tiebreak.text import rounded
from tiebreak.train import checkpoint, monitor
from tiebreak.train.evaluate import PLAIN, Evaluation, not_finite
from tiebreak.train.loop import Tick
from tiebreak.train.run_group import RunGroup, machine_facts
from tiebreak.train.step import Snapshot, rollback

SAVE_SHARE = 0.05  # at most this share of the time goes into checkpoints: fused epochs can be short


class Engine(Protocol):
    """Trains a group of runs one epoch at a time. It changes the states that it was made with in place."""

    def train_epoch(self, split: Split, tick: Tick) -> list[float]:
        """Train the next epoch of every run. Returns their mean training losses, taken before each update."""

    def train_on(self, split: Split, *, learning: bool = True) -> list[npt.NDArray[np.float64]]:
        """One pass of every run that does not advance the epoch counter. The loss of every step, before its update.

        The learning rates are those of the next epoch; without `learning` they are 0, and parameters stay as they are.
        """

    def evaluate(self, split: Split, how: Mapping[str, Scalar] = PLAIN) -> list[Evaluation]:
        """Evaluate every run on a split; `how` are the options of the evaluation."""

    def finite(self) -> list[bool]:
        """Whether all parameters of each run are finite."""

    def provenance(self) -> dict[str, str]:
        """What the record of a run says about how its numbers were computed."""

    def setup_seconds(self) -> float:
        """Seconds spent on tracing, compiling and capturing since the last call; not counted as training."""


class Trainer:
    """Trains runs that are at the same epoch to the end, and reports what happens."""

    def __init__(self, job: Job, group: RunGroup, engine: Engine, send: Callable[[Message], None]) -> None:
        self._job, self._group, self._engine, self._send = job, group, engine, send
        self._alive = dict(enumerate(group.runs))
        self._stopped: dict[int, int] = {}  # rows of runs that validation stopped -> their last epoch
        self._ends: dict[int, Snapshot] = {}  # their states then, where a test pass goes on from them
        self._seconds, self._steps = 0.0, 0  # of training, on its own clock
        self._saved_at, self._save_cost = time.perf_counter(), 0.0

    def train(self, epochs: int) -> Iterator[Message]:
        """The messages of all epochs and of every run's end."""
        first = self._group.states[0].steps
        train_split, val_split = self._group.split("train", {}), self._group.split("val", {})
        for left in range(epochs, 0, -1):
            start = time.perf_counter()
            losses = self._engine.train_epoch(train_split, self._tick(start))
            seconds = self._clocks("train", start)
            if self._job.compiled and "compile" in seconds:
                yield Note(text=f"{self._group.runs[0].design}: compiled in {rounded(seconds['compile'])} s")
            self._seconds += seconds["train"]
            self._steps = self._group.states[0].steps - first
            start = time.perf_counter()
            results = self._evaluate(val_split)
            for name, value in self._clocks("evaluate", start).items():
                seconds[name] = seconds.get(name, 0.0) + value
            values = {
                row: {"train_loss": losses[row], **{f"val_{name}": value for name, value in results[row][0].items()}}
                for row in self._alive
            }
            yield from self._diverged(values)
            stopping = monitor.observe_all(self._alive, self._group.states, values)
            if self._alive:
                yield self._epoch_done(values, seconds, stopping, last=left == 1)
            for row in stopping:
                self._stopped[row] = self._group.states[row].epoch
                if self._in_training_mode(self._alive[row]):
                    self._ends[row] = Snapshot.of(self._group.states[row])
                del self._alive[row]
            if not self._alive:
                break
        yield from self._finals()

    def _in_training_mode(self, run: Run) -> bool:
        """Whether a test pass of the run depends on more of its state than on its weights."""
        tasks = [self._group.task.with_options(how) for how in run.evaluations]
        return any(isinstance(task, Online) and task.evaluates_in_training_mode for task in tasks)

    def _evaluate(self, split: Split, how: Mapping[str, Scalar] = PLAIN, *, undone: bool = False) -> list[Evaluation]:
        """Evaluate every run on a split; with some options by a pass in training mode (`Online`).

        Training on validation changes the parameters that are saved with the epoch. All that a pass over the test split
        changes is `undone`, so that a run ends at its last checkpoint, whatever it was evaluated on.
        """
        task = self._group.task.with_options(how)
        if not (isinstance(task, Online) and task.evaluates_in_training_mode):
            return self._engine.evaluate(split, how)
        with rollback(self._group.states if undone else ()):
            losses = self._engine.train_on(split, learning=task.trains_in_evaluation)
        return [task.score(task.outcomes_from_losses(split, each)) for each in losses]

    def _clocks(self, name: str, start: float) -> dict[str, float]:
        """The seconds since `start`; those of tracing and compiling are listed separately."""
        setup = self._engine.setup_seconds()
        spent = {name: time.perf_counter() - start - setup}
        return {**spent, "compile": setup} if setup else spent

    def _tick(self, start: float) -> Tick:
        began = self._group.states[0].epoch

        def tick(share: float, steps: int) -> None:
            rate = steps * len(self._alive) / (time.perf_counter() - start)
            identities = tuple(run.identity for run in self._alive.values())
            self._send(Progress(identities=identities, epochs=began + share, rate=rate))

        return tick

    def _diverged(self, values: dict[int, dict[str, float]]) -> Iterator[Message]:
        """End the runs that have a metric or a parameter that is not finite; the others are not affected."""
        finite = self._engine.finite()
        for row, run in list(self._alive.items()):
            wrong = not_finite(values[row]) or ("" if finite[row] else "parameters not finite")
            if wrong:
                del self._alive[row]
                reason = f"epoch {self._group.states[row].epoch}: {wrong}"
                yield RunEnded(record=self._ended(row, run, "diverged", reason))

    def _epoch_done(
        self, values: dict[int, dict[str, float]], seconds: dict[str, float], stopping: list[int], *, last: bool
    ) -> EpochDone:
        start, checkpoints = time.perf_counter(), list[CheckpointRecord]()
        pays = start - self._saved_at > self._save_cost / SAVE_SHARE
        saved = list(self._alive) if last or pays or self._job.strategy == "loop" else stopping
        if saved:
            folder = Path(self._job.folder)
            checkpoints = [checkpoint.save(folder, self._alive[row], self._group.states[row]) for row in saved]
        if len(saved) == len(self._alive):
            self._saved_at = time.perf_counter()
            self._save_cost = self._saved_at - start
        seconds["checkpoint"] = time.perf_counter() - start
        shares = {name: value / len(self._alive) for name, value in seconds.items()}
        records = [
            EpochRecord(
                trajectory=run.trajectory, epoch=self._group.states[row].epoch, metrics=values[row], seconds=shares
            )
            for row, run in self._alive.items()
        ]
        return EpochDone(records=tuple(records), checkpoints=tuple(checkpoints))

    def _finals(self) -> Iterator[Message]:
        """The end of every run, with each of its evaluations on the test split."""
        ending = {row: run for row, run in enumerate(self._group.runs) if row in self._alive or row in self._stopped}
        for row in ending:
            if row in self._ends:  # its cohort went on, and its row with it
                self._ends[row].restore(self._group.states[row])
            if self._group.states[row].best:
                monitor.load_evaluated(self._group.states[row])
        evaluations = {evaluation_key(how): how for run in ending.values() for how in run.evaluations}
        finals: dict[int, list[FinalRecord]] = {row: [] for row in ending}
        for key, how in evaluations.items():
            start = time.perf_counter()
            results = self._evaluate(self._group.split("test", how), how, undone=True)
            share = (time.perf_counter() - start) / len(ending)
            for row, run in ending.items():
                if how in run.evaluations:
                    metrics, outcomes = results[row]
                    finals[row].append(
                        FinalRecord(
                            identity=run.identity, evaluation=key, metrics=metrics, outcomes=outcomes, seconds=share
                        )
                    )
        for row, run in ending.items():
            yield RunEnded(record=self._ended(row, run, "done", ""), finals=tuple(finals[row]))

    def _ended(self, row: int, run: Run, status: Status, reason: str) -> RunRecord:
        epoch = self._stopped.get(row, self._group.states[row].epoch)
        return RunRecord(
            identity=run.identity,
            trajectory=run.trajectory,
            status=status,
            epoch=epoch,
            reason=reason,
            provenance={
                **monitor.early_stopping(run, self._group.states[row], epoch),
                "device": self._job.device_label,
                "strategy": self._job.strategy,
                "runs": str(len(self._group.runs)),
                "ms_per_step": f"{1000 * self._seconds / max(1, self._steps):.4g}",
                **machine_facts(),
                **self._engine.provenance(),
            },
        )
