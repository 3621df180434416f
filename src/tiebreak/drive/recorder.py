"""What becomes of a worker's messages: one transaction each, and no more states on the disk than are needed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tiebreak.drive.messages import EpochDone, Measured, Message, RunEnded, Shown, Stop
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.results.check import CHECKPOINTS
from tiebreak.results.record import CheckpointRecord
from tiebreak.results.store import Store


def keep(store: Store, folder: Path, message: Message) -> None:
    """Store what a message carries, one transaction each; then drop the states that it made superfluous."""
    if isinstance(message, Stop):
        raise TiebreakError(message.text)
    superfluous: list[CheckpointRecord] = []
    with store.transaction():
        if isinstance(message, EpochDone):
            for epoch in message.records:
                store.add_epoch(epoch)
            for checkpoint in message.checkpoints:
                store.add_checkpoint(checkpoint)
            superfluous = _older(store, message.checkpoints)
        elif isinstance(message, RunEnded):
            store.add_run(message.record)
            for final in message.finals:
                store.add_final(final)
            kept = store.checkpoints([message.record.identity])
            superfluous = [state for state in kept if state.epoch < message.record.epoch]
        elif isinstance(message, Shown):
            for exhibit in message.exhibits:
                store.add_exhibit(exhibit)
        elif isinstance(message, Measured):
            store.add_choice(message.choice)
        for state in superfluous:
            store.drop_checkpoint(state)
    for state in superfluous:
        (folder / CHECKPOINTS / state.file).unlink(missing_ok=True)


def _older(store: Store, new: Iterable[CheckpointRecord]) -> list[CheckpointRecord]:
    """A run keeps its last two states while it trains, the second in case the first is damaged, and one at its end."""
    last = {state.identity: state.epoch for state in new}
    kept: dict[str, list[CheckpointRecord]] = {}
    for state in store.checkpoints(last) if last else ():
        if state.epoch <= last[state.identity]:
            kept.setdefault(state.identity, []).append(state)
    return [state for states in kept.values() for state in states[:-2]]


def sweep(folder: Path, kept: Iterable[CheckpointRecord]) -> None:
    """Remove files that a killed process wrote but could not have acknowledged."""
    known = {record.file for record in kept}
    for path in (folder / CHECKPOINTS).glob("*") if (folder / CHECKPOINTS).is_dir() else ():
        if path.name not in known:
            path.unlink(missing_ok=True)  # a worker that outlives a killed driver for a moment may rename it


def resumable(run: Run, kept: Iterable[CheckpointRecord]) -> tuple[CheckpointRecord, ...]:
    """The states that the run may continue from, furthest first: its own, or a shorter run's on the same path."""
    trajectory = run.trajectory
    usable = [record for record in kept if record.trajectory == trajectory and record.epoch <= run.epochs]
    return tuple(sorted(usable, key=lambda record: -record.epoch))
