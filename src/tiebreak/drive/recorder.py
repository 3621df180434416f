"""Stores what workers report, together what arrives together, and deletes checkpoints that are no longer needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tiebreak.drive.assignment import KEPT
from tiebreak.drive.messages import Abort, EpochDone, ExhibitsMade, Message, RunEnded, StepsTimed, StrategyMeasured
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.results.checkpoint_file import checkpoint_folder, checkpoint_path
from tiebreak.results.record import CheckpointRecord
from tiebreak.results.store import Store
from tiebreak.text import number_of

STORED = (EpochDone, RunEnded, ExhibitsMade, StrategyMeasured, StepsTimed)


def record(store: Store, folder: Path, *messages: Message) -> None:
    """Store what messages carry in one transaction; then delete the checkpoints that they made superfluous.

    An `Abort` raises, once those before it are stored.
    """
    abort = next((number for number, message in enumerate(messages) if isinstance(message, Abort)), len(messages))
    stored = [message for message in messages[:abort] if isinstance(message, STORED)]
    if stored:
        with store.transaction():
            superfluous = [state for message in stored for state in _store(store, message)]
        for state in (each for each in superfluous if not each.pruned):
            checkpoint_path(folder, state).unlink(missing_ok=True)
    for message in messages[abort:]:
        assert isinstance(message, Abort)
        store.check_identity()  # a worker whose folder vanished stops too: say what is lost
        raise TiebreakError(message.text)


def _store(store: Store, message: Message) -> list[CheckpointRecord]:
    """Store what a message carries, in the current transaction. Returns the checkpoints whose rows it removed."""
    superfluous: list[CheckpointRecord] = []
    if isinstance(message, EpochDone):
        for epoch in message.records:
            store.add_epoch(epoch)
        for checkpoint in message.checkpoints:
            store.add_checkpoint(checkpoint)
        superfluous = store.superfluous_checkpoints(message.checkpoints, KEPT)
    elif isinstance(message, RunEnded):
        store.add_run(message.record)
        store.replace_epochs(message.epochs)
        for final in message.finals:
            store.add_final(final)
        if message.record.status != "failed":  # a failed run is tried again, from its last checkpoint
            kept = store.checkpoints([message.record.identity])
            superfluous = [state for state in kept if state.epoch < message.record.epoch]
    elif isinstance(message, ExhibitsMade):
        for exhibit in message.exhibits:
            store.add_exhibit(exhibit)
    elif isinstance(message, StrategyMeasured | StepsTimed):
        _add_measured(store, message)
    for state in superfluous:
        store.drop_checkpoint(state)
    return superfluous


def _add_measured(store: Store, message: StrategyMeasured | StepsTimed) -> None:
    if isinstance(message, StrategyMeasured):
        store.add_choice(message.choice)
    else:
        for times in message.times:
            store.add_step_times(times)


def remove_unrecorded(folder: Path, kept: Iterable[CheckpointRecord]) -> None:
    """Remove files that a killed process wrote before they were recorded."""
    known = {each.file for each in kept}
    place = checkpoint_folder(folder)
    for path in place.glob("*") if place.is_dir() else ():
        if path.name not in known and (path.is_symlink() or not path.is_dir()):
            path.unlink(missing_ok=True)  # a worker that outlives a killed driver for a moment may rename it


def resumable(run: Run, kept: Iterable[CheckpointRecord]) -> tuple[CheckpointRecord, ...]:
    """The checkpoints that the run can continue from, furthest first: its own, or those of a shorter run."""
    trajectory = run.trajectory
    usable = [each for each in kept if each.trajectory == trajectory and each.epoch <= run.epochs and not each.pruned]
    return tuple(sorted(usable, key=lambda each: -each.epoch))


def pruned_note(runs: Iterable[Run], states: Mapping[str, Sequence[CheckpointRecord]]) -> str:
    """Says how many of the runs could have been continued, had their checkpoints not been pruned; empty if none.

    `states`: all checkpoints by trajectory.
    """
    lost = 0
    for run in runs:
        kept = states.get(run.trajectory, ())
        lost += any(state.pruned for state in kept) and not resumable(run, kept)
    what = f"{number_of(lost, 'run')} cannot be continued, since `tiebreak prune` removed the checkpoints"
    return f"{what}: trained from the beginning" if lost else ""
