"""Training steps of a study's arms, each alone and in turns (A B C, C B A, ...), with the memory that a step takes.

Times taken one after the other differ by whatever else the machine does meanwhile; neighbouring rounds share it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from tiebreak.cost.measure import peak_bytes
from tiebreak.drive.messages import Job, Message, Note, StepsTimed
from tiebreak.errors import StopStudyError, describe_error
from tiebreak.plan.runs import Run, digest
from tiebreak.results.record import StepTimes
from tiebreak.tasks.interface import Split, Task, count, select
from tiebreak.train.loop import Loop
from tiebreak.train.run_group import make_group

ROUNDS, LEAST_ROUNDS = 30, 6  # six are the fewest whose extremes hold the median with 95 %
MOST_STEPS = 10  # of a round


@dataclass(frozen=True)
class Timed:
    """A run that is ready to be timed: training steps on its first batches."""

    loop: Loop
    task: Task
    few: Split  # MOST_STEPS batches
    batch: int
    steps: int  # of an epoch
    memory_bytes: int
    seconds: float  # of a warm step

    def cut(self, steps: int) -> tuple[Split, int]:
        """The examples of so many steps, or of all steps that there are, and how many these are."""
        found = select(self.task, self.few, lambda values: values[: steps * self.batch])
        return found, -(-count(self.task, found) // self.batch)


class RoundError(Exception):
    """What a design raised in a round: the others are timed without it."""

    def __init__(self, cohort: str, raised: BaseException) -> None:
        super().__init__(str(raised))
        self.cohort, self.raised = cohort, raised


def time_in_turns(job: Job) -> Iterator[Message]:
    """Time steps of the job's runs, one of each cohort. A design that raises has no times: training will say why."""
    runs = [Run.model_validate(content) for content in job.runs]
    made: dict[str, Timed] = {}
    for run in runs:
        try:
            made[run.cohort] = _prepare(job, run)
        except StopStudyError:
            raise
        except (Exception, SystemExit) as error:
            yield _not_timed(job, run, error)
    labelled = {run.cohort: run for run in runs}
    while True:
        try:
            found = dict(zip(made, _rounds(made, job.seconds), strict=True))
            break
        except RoundError as error:
            del made[error.cohort]
            yield _not_timed(job, labelled[error.cohort], error.raised)
    group = digest([run.cohort for run in runs])
    yield StepsTimed(
        times=tuple(
            StepTimes(
                cohort=run.cohort,
                device=job.device_label,
                group=group,
                ms=tuple(1000 * seconds for seconds in found[run.cohort]) if ready else (),
                steps=ready.steps if ready else 0,
                memory_bytes=ready.memory_bytes if ready else None,
            )
            for run in runs
            for ready in (made.get(run.cohort),)
        )
    )


def _not_timed(job: Job, run: Run, error: BaseException) -> Note:
    return Note(text=f"{run.label}: not timed in turns: {describe_error(error, job.designs_from)}")


def _prepare(job: Job, run: Run) -> Timed:
    group = make_group(job, [run])
    task, state, train = group.task, group.states[0], group.split("train", {})
    loop = Loop(task, group.network, run, state, group.precision)
    few = select(task, train, lambda values: values[: MOST_STEPS * run.batch].clone())
    one = select(task, few, lambda values: values[: run.batch])
    held = sum(values.nbytes for values in (*state.tensors().values(), *one.values()))
    peak = peak_bytes(lambda: loop.train_on(one), job.device)
    steps = -(-count(task, train) // run.batch)
    return Timed(loop, task, few, run.batch, steps, held + peak, _seconds(loop, one))


def _rounds(made: Mapping[str, Timed], budget: float) -> list[list[float]]:
    """Seconds of a step of each, in every round; none where the least number of rounds would take too long."""
    cohorts, ready = list(made), list(made.values())
    times: list[list[float]] = [[] for _ in ready]
    once = sum(each.seconds for each in ready)
    if len(ready) < 2 or LEAST_ROUNDS * once > budget:
        return times
    steps = max(1, min(MOST_STEPS, int(budget / (ROUNDS * once))))
    cuts = [each.cut(steps) for each in ready]
    start = time.perf_counter()
    for done in range(ROUNDS):
        if done >= LEAST_ROUNDS and time.perf_counter() - start >= budget:
            break
        order = range(len(ready)) if done % 2 == 0 else range(len(ready) - 1, -1, -1)
        for place in order:
            split, taken = cuts[place]
            try:
                times[place].append(_seconds(ready[place].loop, split) / taken)
            except StopStudyError:
                raise
            except (Exception, SystemExit) as error:
                raise RoundError(cohorts[place], error) from error
    return times


def _seconds(loop: Loop, split: Split) -> float:
    """Seconds of a pass over a split; its losses are read, so a GPU has finished.

    On a CPU, where a worker has one thread, those that the processor spent on it: other programs do not count.
    """
    alone = torch.get_num_threads() == 1 and all(values.device.type == "cpu" for values in split.values())
    clock = time.process_time if alone else time.perf_counter
    start = clock()
    loop.train_on(split)
    return clock() - start
