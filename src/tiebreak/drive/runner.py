"""The driver: find out which runs are missing, have them trained, store every record as soon as it exists.

It is the only writer of the store and imports no torch: training happens in worker processes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiebreak.data.checksums import save_checksums
from tiebreak.drive.jobs import describe_choice, needs_measuring, refuse_loop, refuse_planned_loops, strategy_for
from tiebreak.drive.local_workers import Pool
from tiebreak.drive.machine import LOCAL, Machine, ray_pool
from tiebreak.drive.messages import Job, Message, Note, RunEnded, StrategyMeasured, said_once
from tiebreak.drive.recorder import pruned_note, record, remove_unrecorded, resumable
from tiebreak.drive.run_shares import Cohorts, divide, training_started
from tiebreak.drive.timing_budget import needs_timing, timing_seconds, training_seconds
from tiebreak.plan.runs import Plan, Run, cohort_names, cohorts, evaluation_key
from tiebreak.results.example_selection import exhibit_runs
from tiebreak.results.record import SHOWN_EXAMPLES, CheckpointRecord, Choice, Strategy
from tiebreak.results.store import Store
from tiebreak.results.tally import Tally
from tiebreak.study.schema import Study
from tiebreak.text import listed, number_of

if TYPE_CHECKING:
    from tiebreak.cluster.ray_pool import RayPool

CHECKSUMS_FILE = ".checksums.json"  # for the workers, while a command runs

Listener = Callable[[Message], None]


def missing(plan: Plan, store: Store, tried: Collection[str] = ()) -> list[Run]:
    """The runs without a result. One that failed is tried again if it is none of `tried`; diverged is a result."""
    records = store.records()

    def has_result(identity: str, run: Run) -> bool:
        ended, finals = records.runs.get(identity), records.finals.get(identity, {})
        if ended is None or ended.status == "failed":
            return ended is not None and identity in tried
        return ended.status == "diverged" or all(evaluation_key(item) in finals for item in run.evaluations)

    return [run for identity, run in plan.runs.items() if not has_result(identity, run)]


def open_workers(machine: Machine) -> AbstractContextManager[Pool | None]:
    """This machine's workers, for one driver after the other; those of a cluster come with the driver's plan."""
    return Pool(machine.processes(), machine.device) if machine.on == LOCAL else nullcontext()


@contextmanager
def open_driver(
    plan: Plan, folder: Path, machine: Machine, listen: Listener, workers: Pool | None = None
) -> Iterator[Driver]:
    """A driver with one open store and one set of worker processes. `listen` gets every message.

    `workers` are not stopped at its end; without them it has its own.
    """
    checksums = folder / CHECKSUMS_FILE
    own = Pool(machine.processes(), machine.device) if machine.on == LOCAL else ray_pool(plan, folder, machine)
    with closing(Store.create(folder)) as store, nullcontext(workers) if workers else own as pool:
        save_checksums(checksums)
        try:
            yield Driver(plan, folder, machine, store, pool, listen)
        finally:
            checksums.unlink(missing_ok=True)


class Driver:
    """One plan at work: makes the jobs, and stores and reports what the workers send."""

    def __init__(
        self, plan: Plan, folder: Path, machine: Machine, store: Store, pool: Pool | RayPool, listen: Listener
    ) -> None:
        self._plan, self._folder, self._machine = plan, folder, machine
        self._store, self._pool, self._listen = store, pool, listen
        self._choices = store.choices()
        self._states: dict[str, list[CheckpointRecord]] = {}  # by trajectory

    def train(self, tried: Collection[str] = ()) -> int:
        """Train the missing runs. Returns how many there were. Of those `tried`, what failed is not tried again."""
        runs = missing(self._plan, self._store, tried)
        remove_unrecorded(self._folder, self._store.checkpoints())
        self._read_checkpoints()
        if lost := pruned_note(runs, self._states):
            self._listen(Note(text=lost))
        groups = cohorts(runs)
        failed = self._measure(groups)
        ended = {message.record.identity for message in failed}
        left = {key: some for key, some in groups.items() if some[0].identity not in ended}
        names = cohort_names(left)
        strategies = {key: strategy_for(names[key], self._choice(key), self._machine.strategy) for key in left}
        self._time_in_turns(left, strategies)
        slots, choices = self._pool.slots, {key: self._choice(key) for key in left}
        shares = divide(left, strategies, choices, self._machine, slots, self._cost)
        jobs = [
            self._job(share, work="train", strategy=strategies[key], compiled=choice and choice.compiled)
            for key, share in shares
            for choice in [choices[key]]
        ]
        at_once = min(slots, len(jobs))
        self._listen(training_started(self._plan, groups, strategies, self._cost, self._epochs_done, at_once))
        for message in failed:
            self._listen(message)
        self._work(jobs)
        return len(runs)

    def make_exhibits(self, study: Study) -> None:
        """Make the exhibits that are missing, of the runs that the report shows."""
        records = self._store.records()
        new = {
            identity: examples
            for identity, examples in exhibit_runs(Tally(study, self._plan, records)).items()
            if identity not in records.exhibits or (examples and SHOWN_EXAMPLES not in records.exhibits[identity])
        }
        if new:
            self._listen(Note(text=f"making exhibits of {number_of(len(new), 'run')}"))
        self._read_checkpoints()
        runs = self._plan.runs
        self._work([self._job([runs[one]], work="exhibits", examples=tuple(some)) for one, some in new.items()])

    def _choice(self, cohort: str) -> Choice | None:
        """The strategy that was measured for the cohort on this device, if one was."""
        return self._choices.get((cohort, self._machine.device_label))

    def _measure(self, groups: Cohorts) -> list[RunEnded]:
        """Time the strategies of every cohort that needs it, one at a time, so that nothing disturbs the clock.

        Returns the ends of runs whose design raised: they are stored, but `listen` has not got them yet.
        """
        option, device, names = self._machine.strategy, self._machine.device, cohort_names(groups)
        new = [key for key, runs in groups.items() if needs_measuring(len(runs), self._choice(key), option, device)]
        refuse_planned_loops(self._plan, groups, option)
        if new:
            self._listen(
                Note(text=f"timing {', '.join(names[key] for key in new)}: fused, and one run after the other")
            )
        failed = []
        jobs = [self._job(groups[key], work="measure") for key in new]
        for message in self._stored(jobs, at_most=1):
            if isinstance(message, RunEnded):
                failed.append(message)
            elif isinstance(message, StrategyMeasured):
                key = message.choice.cohort
                self._choices[key, message.choice.device] = message.choice
                refuse_loop(names[key], message.choice.reason, option)
                strategy = "fused" if option == "fused" else message.choice.strategy
                self._listen(Note(text=describe_choice(names[key], len(groups[key]), message.choice, strategy)))
            else:
                self._listen(message)
        return failed

    def _time_in_turns(self, groups: Cohorts, strategies: Mapping[str, Strategy]) -> None:
        """Time training steps of all arms alone and in turns, once for a device: for the verdict, not for training."""
        arms = cohorts(self._plan.runs[next(iter(arm.runs.values()))] for arm in self._plan.arms)
        known, device = self._store.step_times(), self._machine.device_label
        if self._machine.strategy == "loop" or not needs_timing(arms, groups, known, device):
            return
        costs = {key: self._cost(key, strategy) for key, strategy in strategies.items()}
        training = training_seconds(groups, costs, self._plan.data.sizes["train"]) / self._pool.slots
        self._listen(Note(text=f"timing a training step of {listed(list(cohort_names(arms).values()))} in turns"))
        runs, seconds = [some[0] for some in arms.values()], timing_seconds(len(arms), training)
        self._work([self._job(runs, work="time", seconds=seconds)])

    def _cost(self, key: str, strategy: Strategy) -> float:
        """Milliseconds for a step of a run, if they were measured; else the mean over the cohorts that were."""
        choice = self._choice(key)
        if choice is None:
            known = [each.fused_ms or each.alone_ms for each in self._choices.values()]
            return sum(known) / len(known) if known else 1.0
        alone = choice.alone_ms if strategy == "captured" else choice.loop_ms
        return choice.fused_ms if strategy == "fused" and choice.fused_ms else alone

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
            checksums=str((self._folder / CHECKSUMS_FILE).resolve()),
            **more,
        )

    def _read_checkpoints(self) -> None:
        self._states = {}
        for state in self._store.checkpoints():
            self._states.setdefault(state.trajectory, []).append(state)

    def _epochs_done(self, run: Run) -> int:
        return max((state.epoch for state in self._resumable(run)), default=0)

    def _resumable(self, run: Run) -> tuple[CheckpointRecord, ...]:
        return resumable(run, self._states.get(run.trajectory, []))

    def _work(self, jobs: Sequence[Job]) -> None:
        """Have the jobs done; store and report what the workers send."""
        for message in self._stored(jobs):
            self._listen(message)

    def _stored(self, jobs: Sequence[Job], at_most: int | None = None) -> Iterator[Message]:
        """What the workers send, once it is stored: in one transaction what has arrived meanwhile."""
        for messages in self._pool.run(jobs, at_most):
            record(self._store, self._folder, *messages)
            yield from said_once(messages)
