"""The driver of a study of programs: starts the missing runs, as many at a time as fit, and stores how they end.

It is the only writer of the store, like the driver of networks (`drive.runner`), and imports no torch.
"""

from __future__ import annotations

import selectors
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import Note, PendingRun, Progress, RunEnded, TrainingStarted
from tiebreak.drive.recorder import record
from tiebreak.drive.runner import Listener, missing
from tiebreak.errors import TiebreakError
from tiebreak.plan.program_plan import program_inputs, require_program
from tiebreak.plan.runs import Plan, Run
from tiebreak.program.calls import Calls
from tiebreak.program.consent import require_consent
from tiebreak.program.ending import Reader
from tiebreak.program.launch import Launched, command_line, other_python
from tiebreak.program.local_calls import call_in_process
from tiebreak.program.run_folder import RUN_VARIABLE, RunFolder
from tiebreak.program.score_files import MissingMetricError, end_last_line
from tiebreak.program.slots import Slots, visible_gpus
from tiebreak.program.supervisor import Order
from tiebreak.results.store import Store
from tiebreak.study.program_keys import Program, seconds
from tiebreak.study.schema import Study
from tiebreak.system import cores
from tiebreak.text import number_of

TICK_SECONDS = 2.0  # between two estimates of the time left, while nothing ends


@dataclass
class Running:
    """A run that has a place."""

    run: Run
    place: int
    folder: RunFolder
    log_start: int
    launched: Launched
    since: float = field(default_factory=time.monotonic)


def check_start(study: Study, machine: Machine, *, allow: bool) -> None:
    """Refuse what cannot start, before a folder is made: no program, no permission, options for networks only."""
    assert study.program is not None
    default = Machine()
    for name in ("device", "strategy", "precision", "data_dir", "on"):
        if getattr(machine, name) != getattr(default, name):
            flag = name.replace("_", "-")
            raise TiebreakError(f"--{flag}: not for a program, which decides by itself; see `cores` and `gpus`")
    require_program(study)
    require_consent(study, allow=allow)
    Slots.of_machine(study.program, machine.workers)  # refuses GPUs that are not there


@contextmanager
def open_program_driver(
    study: Study, plan: Plan, folder: Path, machine: Machine, listen: Listener, calls: Calls | None = None
) -> Iterator[ProgramDriver]:
    """A driver with an open store. `calls` holds the functions that only this process has."""
    with closing(Store.create(folder)) as store:
        yield ProgramDriver(study, plan, folder, machine, store, listen, calls)


class ProgramDriver:
    """One study of a program at work."""

    def __init__(
        self,
        study: Study,
        plan: Plan,
        folder: Path,
        machine: Machine,
        store: Store,
        listen: Listener,
        calls: Calls | None,
    ) -> None:
        assert study.program is not None
        self._study, self._plan, self._folder, self._store = study, plan, folder, store
        self._program: Program = study.program
        self._workers, self._listen, self._calls = machine.workers, listen, calls
        self._reader = Reader(study, study.program)
        self._arms = {identity: arm.name for arm in plan.arms for identity in arm.runs.values()}
        self._seconds: list[float] = []  # of the runs that ended in this command
        self._scored = False  # whether a run has given the scores that the study asks for

    def train(self, tried: Collection[str] = ()) -> int:
        """Run what is missing. Returns how many runs there were. Of those `tried`, what failed is not tried again."""
        runs = missing(self._plan, self._store, tried)
        records = self._store.records().runs
        self._scored = any(records[one].status == "done" for one in self._plan.runs if one in records)
        for run in runs:
            if RunFolder(self._folder, run.identity).end_leftover():
                self._listen(Note(text=f"{run.label}: its program of an earlier command still ran, and was ended"))
        if self._program.in_process:
            self._start_display(runs, 1)
            self._call_all(runs)
        else:
            slots = Slots.of_machine(self._program, self._workers)
            for line in self._surprises() if runs else ():
                self._listen(Note(text=line))
            self._start_display(runs, min(len(slots), len(runs)))
            self._run_all(runs, slots)
        return len(runs)

    def _surprises(self) -> Iterator[str]:
        """What runs find on this machine that their author may not expect."""
        if not self._program.gpus and (gpus := len(visible_gpus())):
            yield f"{number_of(gpus, 'GPU')} of this machine: runs do not see them; set `gpus` in [program]"
        if self._program.cores > cores():
            yield f"program.cores: {self._program.cores} for each run, but this machine has {cores()}"
        if line := other_python(self._study):
            yield line

    def _start_display(self, runs: Sequence[Run], at_once: int) -> None:
        pending = {
            run.identity: PendingRun(
                label=run.label,
                cohort=self._arms[run.identity],
                trajectory=run.trajectory,
                epochs=1,
                done=0,
                strategy="loop",
            )
            for run in runs
        }
        stored = len(self._plan.runs) - len(runs)
        self._listen(TrainingStarted(runs=pending, steps=1, stored=stored, workers=at_once, unit="run"))

    def _run_all(self, runs: Sequence[Run], slots: Slots) -> None:
        waiting, planned, changed = deque(runs), program_inputs(self._study), list[str]()
        with selectors.DefaultSelector() as selector:
            try:
                while waiting or selector.get_map():
                    while waiting and (place := slots.take()) is not None:
                        if changed := sorted(set(planned) ^ set(program_inputs(self._study))):
                            waiting.clear()  # what runs has read its files; nothing new is started
                            break
                        running = self._start(waiting.popleft(), place, slots)
                        selector.register(running.launched.report, selectors.EVENT_READ, running)
                        self._show([running])
                    ready = selector.select(TICK_SECONDS)
                    for key, _ in ready:
                        selector.unregister(key.fileobj)
                        slots.give_back(key.data.place)
                        self._finish(key.data)
                    if not ready:
                        self._show([key.data for key in selector.get_map().values()])
            finally:
                left = [key.data.launched for key in selector.get_map().values()]
                for launched in left:
                    launched.stop()
                for launched in left:
                    launched.wait()
        if changed:
            name = changed[0].rpartition(" ")[0]
            raise TiebreakError(
                f"study {self._study.name}: {name} has changed since the study was started, so that its runs would not "
                "be equal; run the same command again: the new version makes runs of its own"
            )

    def _start(self, run: Run, place: int, slots: Slots) -> Running:
        folder = RunFolder(self._folder, run.identity)
        log_start = self._prepare(folder)
        order = Order(
            command=command_line(self._study, self._study.arm(self._arms[run.identity]), run, folder.out),
            folder=self._program.folder,
            environment={**slots.environment(place), RUN_VARIABLE: str(folder.out)},
            log=str(folder.log),
            process_file=str(folder.process_file),
            timeout=None if self._program.timeout is None else seconds(self._program.timeout),
        )
        return Running(run, place, folder, log_start, Launched(order))

    def _prepare(self, folder: RunFolder) -> int:
        """Make the run's folder, or have it ready for another attempt; the size of the output so far."""
        log_start = folder.prepare(self._program.scores, self._program.outcomes)
        end_last_line(folder.out, self._program)
        return log_start

    def _show(self, running: Sequence[Running]) -> None:
        """Estimate how far runs are, from the time that others took."""
        usual = mean(self._seconds) if self._seconds else 0.0
        for each in running:
            share = min((time.monotonic() - each.since) / usual, 0.95) if usual else 0.0
            self._listen(Progress(identities=(each.run.identity,), epochs=share, rate=0.0))

    def _finish(self, running: Running) -> None:
        ended = running.launched.wait()
        if ended.problem:
            running.folder.end_leftover()  # its supervisor was killed
        output = running.folder.tail(running.log_start)
        self._seconds.append(ended.seconds)
        try:
            message = self._reader.record(running.run, running.folder.out, ended, output)
        except MissingMetricError as error:
            message = self._without_metric(running.run, error, output)
        self._store_end(message)

    def _without_metric(self, run: Run, error: MissingMetricError, output: str) -> RunEnded:
        """The first run that lacks the study's metric ends the study: all others would lack it too."""
        if not self._scored:
            raise TiebreakError(f"study {self._study.name}: {error}") from None
        return self._reader.failed(run, str(error), output)

    def _store_end(self, message: RunEnded) -> None:
        record(self._store, self._folder, message)
        self._scored = self._scored or message.record.status == "done"
        self._listen(message)

    def _call_all(self, runs: Sequence[Run]) -> None:
        """Call functions that only this process has, one after the other."""
        if not self._calls:
            if runs:
                raise TiebreakError(
                    f"study {self._study.name}: its function belonged to a notebook or a running Python program; "
                    "call tb.compare again there"
                )
            return
        for run in runs:
            folder = RunFolder(self._folder, run.identity)
            log_start = self._prepare(folder)
            self._listen(Progress(identities=(run.identity,), epochs=0.0, rate=0.0))
            ended = call_in_process(self._calls[self._arms[run.identity]], run, folder)
            try:
                message = self._reader.record(run, folder.out, ended, folder.tail(log_start))
            except MissingMetricError as error:
                message = self._without_metric(run, error, folder.tail(log_start))
            self._store_end(message)
