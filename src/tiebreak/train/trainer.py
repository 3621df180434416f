"""Runs at the same epoch on their way to the end: records, checkpoints, divergence, whatever the strategy.

How an epoch is trained and evaluated is the engine's: `loop` for one run, `fused` for many as one computation.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from tiebreak.drive.messages import EpochDone, Job, Message, Progress, RunEnded
from tiebreak.plan.runs import Run, evaluation_key
from tiebreak.results.record import CheckpointRecord, EpochRecord, FinalRecord, RunRecord, Status
from tiebreak.study.registry import Scalar
from tiebreak.tasks.interface import Online, Split, Task
from tiebreak.train import checkpoint
from tiebreak.train.evaluate import PLAIN, Evaluation
from tiebreak.train.loop import Tick
from tiebreak.train.step import State, undone

SAVE_SHARE = 0.05  # fused epochs can be short: at most this share of the time goes into checkpoints


class Engine(Protocol):
    """How runs are trained together, one epoch at a time. It changes the states that it was made with in place."""

    def train_epoch(self, split: Split, tick: Tick) -> list[float]:
        """Train the next epoch of every run. Returns each run's mean training loss, as seen while training."""

    def train_on(self, split: Split) -> list[npt.NDArray[np.float64]]:
        """Train every run on a split without its being an epoch. The losses of all steps, each seen before its update.

        The learning rate's course is that of the next epoch.
        """

    def evaluate(self, split: Split, how: Mapping[str, Scalar] = PLAIN) -> list[Evaluation]:
        """Evaluate every run on a split, in the way that the evaluation's options say."""

    def finite(self) -> list[bool]:
        """Whether all parameters of each run are numbers."""

    def provenance(self) -> dict[str, str]:
        """How the numbers were made."""

    def setup_seconds(self) -> float:
        """Seconds spent on tracing, compiling and capturing since the last call: a clock of its own."""


@dataclass(frozen=True)
class Work:
    """Runs that are trained together, with everything they are trained with."""

    runs: list[Run]
    task: Task
    data: Any
    network: nn.Module  # the first run's: all have the same structure
    states: list[State]
    device: torch.device

    def split(self, name: str, evaluation: Mapping[str, Scalar]) -> Split:
        """One split of the data on the device. The runs of a cohort have the same task options."""
        tensors = self.task.split(self.data, name, self.runs[0].options, evaluation)
        return {key: values.to(self.device) for key, values in tensors.items()}


class Trainer:
    """Runs at the same epoch on their way to the end."""

    def __init__(self, job: Job, work: Work, engine: Engine, send: Callable[[Message], None]) -> None:
        self._job, self._work, self._engine, self._send = job, work, engine, send
        self._alive = dict(enumerate(work.runs))
        self._seconds, self._steps = 0.0, 0  # of training, on its own clock
        self._saved_at, self._save_cost = time.perf_counter(), 0.0

    def train(self, epochs: int) -> Iterator[Message]:
        """The messages of all epochs and of every run's end."""
        first = self._work.states[0].steps
        train_split, val_split = self._work.split("train", {}), self._work.split("val", {})
        for left in range(epochs, 0, -1):
            start = time.perf_counter()
            losses = self._engine.train_epoch(train_split, self._tick(start))
            seconds = self._clocks("train", start)
            self._seconds += seconds["train"]
            self._steps = self._work.states[0].steps - first
            start = time.perf_counter()
            results = self._evaluate(val_split)
            for name, value in self._clocks("evaluate", start).items():
                seconds[name] = seconds.get(name, 0.0) + value
            values = {
                row: {"train_loss": losses[row], **{f"val_{name}": value for name, value in results[row][0].items()}}
                for row in self._alive
            }
            yield from self._diverged(values)
            if not self._alive:
                return
            yield self._epoch_done(values, seconds, last=left == 1)
        yield from self._finals()

    @property
    def _online(self) -> bool:
        return isinstance(self._work.task, Online) and self._work.task.trains

    def _evaluate(self, split: Split, how: Mapping[str, Scalar] = PLAIN) -> list[Evaluation]:
        """Evaluate every run on a split. Where the task says that evaluation trains, it does.

        On validation the parameters stay changed, and what is saved at the end of the epoch is what came of it. What
        training on the test split changed is undone: a run's end is its last checkpoint, whatever it was evaluated on.
        """
        task = self._work.task
        if not (isinstance(task, Online) and task.trains):
            return self._engine.evaluate(split, how)
        bound = task.with_options(how)
        return [bound.score(task.seen(split, losses)) for losses in self._engine.train_on(split)]

    def _clocks(self, name: str, start: float) -> dict[str, float]:
        """The seconds since `start`, those of tracing and compiling apart."""
        setup = self._engine.setup_seconds()
        spent = {name: time.perf_counter() - start - setup}
        return {**spent, "compile": setup} if setup else spent

    def _tick(self, start: float) -> Tick:
        began = self._work.states[0].epoch

        def tick(share: float, steps: int) -> None:
            rate = steps * len(self._alive) / (time.perf_counter() - start)
            identities = tuple(run.identity for run in self._alive.values())
            self._send(Progress(identities=identities, epochs=began + share, rate=rate))

        return tick

    def _diverged(self, values: dict[int, dict[str, float]]) -> Iterator[Message]:
        """End the runs in which something stopped being a number; the others go on as if nothing had happened."""
        finite = self._engine.finite()
        for row, run in list(self._alive.items()):
            wrong = _not_a_number(values[row]) or ("" if finite[row] else "parameters not finite")
            if wrong:
                del self._alive[row]
                reason = f"epoch {self._work.states[row].epoch}: {wrong}"
                yield RunEnded(record=self._ended(row, run, "diverged", reason))

    def _epoch_done(self, values: dict[int, dict[str, float]], seconds: dict[str, float], *, last: bool) -> EpochDone:
        start, checkpoints = time.perf_counter(), list[CheckpointRecord]()
        pays = start - self._saved_at > self._save_cost / SAVE_SHARE
        if last or pays or self._job.strategy == "loop":
            folder = Path(self._job.folder)
            checkpoints = [checkpoint.save(folder, run, self._work.states[row]) for row, run in self._alive.items()]
            self._saved_at = time.perf_counter()
            self._save_cost = self._saved_at - start
        seconds["checkpoint"] = time.perf_counter() - start
        shares = {name: value / len(self._alive) for name, value in seconds.items()}
        records = [
            EpochRecord(
                trajectory=run.trajectory, epoch=self._work.states[row].epoch, metrics=values[row], seconds=shares
            )
            for row, run in self._alive.items()
        ]
        return EpochDone(records=tuple(records), checkpoints=tuple(checkpoints))

    def _finals(self) -> Iterator[Message]:
        """The end of every run, evaluated on the test split in each way that it asks for."""
        wanted = {evaluation_key(how): how for run in self._alive.values() for how in run.evaluations}
        finals: dict[int, list[FinalRecord]] = {row: [] for row in self._alive}
        for key, how in wanted.items():
            start = time.perf_counter()
            with undone(self._work.states if self._online else ()):
                results = self._evaluate(self._work.split("test", how), how)
            share = (time.perf_counter() - start) / len(self._alive)
            for row, run in self._alive.items():
                if how in run.evaluations:
                    metrics, outcomes = results[row]
                    finals[row].append(
                        FinalRecord(
                            identity=run.identity, evaluation=key, metrics=metrics, outcomes=outcomes, seconds=share
                        )
                    )
        for row, run in self._alive.items():
            yield RunEnded(record=self._ended(row, run, "done", ""), finals=tuple(finals[row]))

    def _ended(self, row: int, run: Run, status: Status, reason: str) -> RunRecord:
        return RunRecord(
            identity=run.identity,
            trajectory=run.trajectory,
            status=status,
            epoch=self._work.states[row].epoch,
            reason=reason,
            provenance={
                "device": self._job.place,
                "strategy": self._job.strategy,
                "runs": str(len(self._work.runs)),
                "ms_per_step": f"{1000 * self._seconds / max(1, self._steps):.4g}",
                "threads": str(torch.get_num_threads()),
                "torch": torch.__version__,
                "python": platform.python_version(),
                "machine": platform.machine(),
                **self._engine.provenance(),
            },
        )


def _not_a_number(values: Mapping[str, float]) -> str:
    """What stopped being a number, if anything did: that ends a run."""
    wrong = [f"{name.replace('_', ' ')} {value:g}" for name, value in values.items() if not math.isfinite(value)]
    return wrong[0] if wrong else ""
