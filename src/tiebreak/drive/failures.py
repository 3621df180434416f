"""The end of a run that failed. No torch."""

from __future__ import annotations

from tiebreak.drive.messages import RunEnded
from tiebreak.plan.runs import Run
from tiebreak.results.record import RunRecord


def failed(run: Run, epoch: int, reason: str) -> RunEnded:
    """The end of a run that failed after `epoch` whole epochs."""
    record = RunRecord(identity=run.identity, trajectory=run.trajectory, status="failed", epoch=epoch, reason=reason)
    return RunEnded(record=record)
