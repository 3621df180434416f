"""How a run of a program ended: from its exit code and its files to the record that is stored."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tiebreak.drive.messages import RunEnded
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.program.score_files import MissingMetricError, read_curves, read_outcomes, read_scores_file
from tiebreak.program.supervisor import Ended
from tiebreak.results.record import EpochRecord, FinalRecord, RunRecord, Status
from tiebreak.study.program_keys import Program
from tiebreak.study.schema import Study
from tiebreak.system import was_killed
from tiebreak.text import one_line


@dataclass(frozen=True)
class Reader:
    """Makes records of what runs of a study's program leave behind."""

    study: Study
    program: Program

    @property
    def metrics(self) -> tuple[str, ...]:
        """The test metrics that the study compares, its own first."""
        others = [item.metric for item in self.study.comparisons if item.metric is not None]
        others += [name for item in self.study.comparisons if item.kind == "order" for name in item.metrics]
        return tuple(dict.fromkeys((self.study.metric, *others)))

    def record(self, run: Run, out: Path, ended: Ended, output: str) -> RunEnded:
        """The end of a run. MissingMetricError where it succeeded, but its scores do not answer the question."""
        try:
            curves = read_curves(out, self.program)
        except TiebreakError as error:
            return self.failed(run, str(error), output)
        problem = describe(ended, self.program)
        if problem:
            if (not_finite := _not_finite(curves)) and not ended.timed_out and not ended.problem:
                return self._without_scores(run, "diverged", f"{not_finite}; then {problem}", output, curves, ended)
            last = output.rstrip().rpartition("\n")[2].strip()
            return self.failed(run, f"{problem}: {one_line(last, 200)}" if last and ended.code > 0 else problem, output)
        try:
            scores = read_scores_file(
                out,
                self.program,
                self.metrics,
                needs_val=max(len(self.study.settings(arm)) for arm in self.study.arms) > 1,
            )
            if diverged := scores.not_finite():
                return self._without_scores(run, "diverged", diverged, output, curves, ended)
            outcomes, left_out = read_outcomes(out, self.program, scores)
        except MissingMetricError:
            raise
        except TiebreakError as error:
            return self.failed(run, str(error), output)
        epochs = _epochs(run, curves, ended.seconds)
        provenance = {**_provenance(), **({"outcomes left out": left_out} if left_out else {})}
        record = RunRecord(
            identity=run.identity,
            trajectory=run.trajectory,
            status="done",
            epoch=len(epochs),
            provenance=provenance,
        )
        metrics = {**scores.test, **{f"val_{name}": value for name, value in scores.val.items()}}
        final = FinalRecord(
            identity=run.identity, evaluation="default", metrics=metrics, outcomes=outcomes, seconds=0.0
        )
        return RunEnded(record=record, finals=(final,), epochs=epochs)

    def failed(self, run: Run, reason: str, output: str) -> RunEnded:
        """The end of a run that failed. It is tried again by the next command."""
        record = RunRecord(
            identity=run.identity,
            trajectory=run.trajectory,
            status="failed",
            epoch=0,
            reason=reason,
            provenance=_provenance(),
            output=output,
        )
        return RunEnded(record=record)

    def _without_scores(
        self, run: Run, status: Status, reason: str, output: str, curves: Sequence[dict[str, float]], ended: Ended
    ) -> RunEnded:
        epochs = _epochs(run, curves, ended.seconds)
        record = RunRecord(
            identity=run.identity,
            trajectory=run.trajectory,
            status=status,
            epoch=len(epochs),
            reason=reason,
            provenance=_provenance(),
            output=output,
        )
        return RunEnded(record=record, epochs=epochs)


def describe(ended: Ended, program: Program) -> str:
    """What went wrong with the process, in words; empty where it ended with exit code 0."""
    if ended.problem:
        return ended.problem
    if ended.timed_out:
        return f"ended after {program.timeout}, the time limit (program.timeout)"
    if ended.code < 0:
        memory = " (out of memory?)" if was_killed(ended.code) else ""
        return f"killed by signal {-ended.code}{memory}"
    if ended.code and program.in_process:
        return "the function raised an exception"
    return f"exit code {ended.code}" if ended.code else ""


def _not_finite(curves: Sequence[dict[str, float]]) -> str:
    """The first metric of the last epoch that is no finite number, in words."""
    for name, value in curves[-1].items() if curves else ():
        if not math.isfinite(value):
            return f"{name} is {value} in epoch {len(curves)}"
    return ""


def _epochs(run: Run, curves: Sequence[dict[str, float]], seconds: float) -> tuple[EpochRecord, ...]:
    """The epochs of a run; without curves one epoch that holds the time. The time is the whole process's, shared."""
    known = curves or [{}]
    return tuple(
        EpochRecord(trajectory=run.trajectory, epoch=number, metrics=metrics, seconds={"train": seconds / len(known)})
        for number, metrics in enumerate(known, start=1)
    )


def _provenance() -> dict[str, str]:
    return {"host": platform.node(), "system": platform.platform()}
