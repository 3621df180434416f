"""Messages of runs that nobody trained, for what the driver does with them."""

from __future__ import annotations

from tiebreak.drive.messages import EpochDone, RunEnded
from tiebreak.plan.runs import Run
from tiebreak.results.record import CheckpointRecord, EpochRecord, FinalRecord, RunRecord


def state(run: Run, epoch: int) -> CheckpointRecord:
    return CheckpointRecord(
        identity=run.identity,
        trajectory=run.trajectory,
        epoch=epoch,
        file=f"{run.identity}-{epoch}.safetensors",
        sha256="",
    )


def epoch_done(run: Run, epoch: int) -> EpochDone:
    record = EpochRecord(trajectory=run.trajectory, epoch=epoch, metrics={}, seconds={})
    return EpochDone(records=(record,), checkpoints=(state(run, epoch),))


def ended(run: Run, record: dict[str, object], evaluations: tuple[str, ...] = ()) -> RunEnded:
    return RunEnded(
        record=RunRecord(identity=run.identity, trajectory=run.trajectory, **record),  # type: ignore[arg-type]
        finals=tuple(
            FinalRecord(identity=run.identity, evaluation=name, metrics={}, outcomes={}, seconds=0.0)
            for name in evaluations
        ),
    )
