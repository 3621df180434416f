"""The driver: find out what is missing, have it trained, keep every record the moment it exists.

It is the only writer of the store and imports no torch: training happens in worker processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tiebreak.drive.jobs import Wanted, needs_measuring, shares, strategy_for, told
from tiebreak.drive.local_workers import Pool
from tiebreak.drive.messages import Begun, Job, Measured, Message, Note, RunEnded, Starting
from tiebreak.drive.recorder import keep, resumable, sweep
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan, Run, cohort_names, cohorts, evaluation_key
from tiebreak.results.example_selection import to_show
from tiebreak.results.record import CheckpointRecord, Choice, Precision, Strategy, place_of
from tiebreak.results.store import Store
from tiebreak.results.tally import Tally
from tiebreak.study.schema import Study

Listener = Callable[[Message], None]
Cohorts = Mapping[str, Sequence[Run]]  # by key


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where training happens, and how."""

    device: str = "cpu"
    workers: int | None = None  # None: one per core on the CPU, one on a GPU
    data_dir: Path | None = None
    strategy: Wanted = "auto"  # auto: the faster one, measured once per cohort
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        """Refuse what no device can do."""
        if self.precision != "float32" and self.device == "cpu":
            raise TiebreakError(f"precision {self.precision} is a GPU's (--device cuda); a CPU computes in float32")

    @property
    def place(self) -> str:
        """Where training happens, as records name it."""
        return place_of(self.device, self.precision)

    def processes(self) -> int:
        """How many worker processes to start."""
        if self.workers is not None:
            return self.workers
        return len(os.sched_getaffinity(0)) if self.device == "cpu" else 1


def missing(plan: Plan, store: Store) -> list[Run]:
    """The runs without a result. A run that failed is tried again; one that diverged is a result."""
    records = store.records()

    def has_result(identity: str, run: Run) -> bool:
        record, finals = records.runs.get(identity), records.finals.get(identity, {})
        if record is None or record.status == "failed":
            return False
        return record.status == "diverged" or all(evaluation_key(item) in finals for item in run.evaluations)

    return [run for identity, run in plan.runs.items() if not has_result(identity, run)]


def train_plan(plan: Plan, folder: Path, machine: Machine, listen: Listener) -> int:
    """Train what is missing and keep it. Returns how many runs were trained; `listen` hears every message."""
    with closing(Store.create(folder)) as store, Pool(machine.processes()) as pool:
        driver = _Driver(plan, folder, machine, store, pool, listen)
        runs = missing(plan, store)
        sweep(folder, store.checkpoints())
        groups = cohorts(runs)
        failed = driver.measure(groups)
        ended = {message.record.identity for message in failed}
        left = {key: some for key, some in groups.items() if some[0].identity not in ended}
        strategies = driver.strategies(left)
        jobs = [
            driver.job(share, strategy)
            for key, strategy in strategies.items()
            for share in shares(left[key], strategy, driver.choice(key), machine.device, machine.processes())
        ]
        listen(driver.begun(groups, strategies, min(machine.processes(), len(jobs))))
        for message in failed:
            listen(message)
        driver.work(jobs)
    return len(runs)


def show_plan(study: Study, plan: Plan, folder: Path, machine: Machine, listen: Listener) -> None:
    """Make the exhibits that are not there yet, of the runs that the report is about."""
    with closing(Store.create(folder)) as store, Pool(machine.processes()) as pool:
        records = store.records()
        wanted = to_show(Tally(study, plan, records))
        new = {
            identity: examples
            for identity, examples in wanted.items()
            if identity not in records.exhibits or (examples and "examples" not in records.exhibits[identity])
        }
        if new:
            listen(Note(text=f"making exhibits of {len(new)} run{'s' if len(new) > 1 else ''}"))
        driver = _Driver(plan, folder, machine, store, pool, listen)
        driver.work([driver.job_to_show(plan.runs[identity], examples) for identity, examples in new.items()])


class _Driver:
    """One study at work: what is asked of the workers, and what becomes of their answers."""

    def __init__(self, plan: Plan, folder: Path, machine: Machine, store: Store, pool: Pool, listen: Listener) -> None:
        self._plan, self._folder, self._machine = plan, folder, machine
        self._store, self._pool, self._listen = store, pool, listen
        self._choices = store.choices()
        self._states: dict[str, list[CheckpointRecord]] = {}  # by trajectory
        for record in store.checkpoints():
            self._states.setdefault(record.trajectory, []).append(record)

    def choice(self, cohort: str) -> Choice | None:
        """How the cohort was measured on this device, if it was."""
        return self._choices.get((cohort, self._machine.place))

    def measure(self, groups: Cohorts) -> list[RunEnded]:
        """Time the strategies of every cohort that needs it, one at a time, so that nothing disturbs the clock.

        Returns the ends of runs whose design failed already here; they are stored, but not told yet.
        """
        wanted, names = self._machine.strategy, cohort_names(groups)
        new = [key for key, runs in groups.items() if needs_measuring(len(runs), self.choice(key), wanted)]
        if new:
            self._listen(
                Note(text=f"timing {', '.join(names[key] for key in new)}: fused, and one run after the other")
            )
        failed = []
        for message in self._pool.run([self.job(groups[key], work="measure") for key in new], at_most=1):
            keep(self._store, self._folder, message)
            if isinstance(message, RunEnded):
                failed.append(message)
            elif isinstance(message, Measured):
                key = message.choice.cohort
                self._choices[key, message.choice.device] = message.choice
                strategy = "fused" if wanted == "fused" and not message.choice.reason else message.choice.strategy
                self._listen(Note(text=told(names[key], len(groups[key]), message.choice, strategy)))
            else:
                self._listen(message)
        return failed

    def strategies(self, groups: Cohorts) -> dict[str, Strategy]:
        """How every cohort is trained."""
        names = cohort_names(groups)
        return {key: strategy_for(names[key], self.choice(key), self._machine.strategy) for key in groups}

    def begun(self, groups: Cohorts, strategies: Mapping[str, Strategy], workers: int) -> Begun:
        """What is about to be trained."""
        names = cohort_names(groups)
        runs = {}
        for key, some in groups.items():
            strategy = strategies.get(key, "loop")
            for run in some:
                states = self._resumable(run)
                runs[run.identity] = Starting(
                    label=run.label,
                    cohort=names[key],
                    trajectory=run.trajectory,
                    epochs=run.epochs,
                    done=states[0].epoch if states else 0,
                    strategy=strategy,
                    cost=self._cost(key, strategy),
                )
        batch = next((run.batch for run in self._plan.runs.values()), 1)
        return Begun(
            runs=runs,
            steps=-(-self._plan.data.sizes["train"] // batch),
            stored=len(self._plan.runs) - len(runs),
            workers=workers,
        )

    def _cost(self, key: str, strategy: Strategy) -> float:
        """Milliseconds for a step of a run, as far as they were measured; for the others the mean of what is known."""
        choice = self.choice(key)
        if choice is None:
            known = [each.fused_ms or each.loop_ms for each in self._choices.values()]
            return sum(known) / len(known) if known else 1.0
        return choice.fused_ms if strategy == "fused" and choice.fused_ms else choice.loop_ms

    def job(self, runs: Sequence[Run], strategy: Strategy = "loop", work: Literal["train", "measure"] = "train") -> Job:
        """Training, or timing, of runs of one cohort."""
        return self._job(runs, work=work, strategy=strategy)

    def job_to_show(self, run: Run, examples: Iterable[int]) -> Job:
        """The exhibits of a finished run."""
        return self._job([run], work="show", examples=tuple(examples))

    def _job(self, runs: Sequence[Run], **more: Any) -> Job:
        machine = self._machine
        return Job(
            runs=tuple(run.model_dump(mode="json") for run in runs),
            folder=str(self._folder),
            data_dir=str(machine.data_dir.resolve()) if machine.data_dir else None,
            device=machine.device,
            precision=machine.precision,
            designs_from=self._plan.designs_from,
            checkpoints=tuple(self._resumable(run) for run in runs),
            **more,
        )

    def _resumable(self, run: Run) -> tuple[CheckpointRecord, ...]:
        return resumable(run, self._states.get(run.trajectory, []))

    def work(self, jobs: Sequence[Job]) -> None:
        """Have the jobs done; keep and tell what the workers say."""
        for message in self._pool.run(jobs):
            keep(self._store, self._folder, message)
            self._listen(message)
