"""Checkpoints: the complete state of a run in one safetensors file, which is replaced atomically."""

from __future__ import annotations

import hashlib
from pathlib import Path

import safetensors.torch
import torch

from tiebreak import files
from tiebreak.errors import StopStudyError, TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.results.check import CHECKPOINTS
from tiebreak.results.record import CheckpointRecord
from tiebreak.train.step import State

POSITION = "position"  # epochs and steps completed


def save(folder: Path, run: Run, state: State) -> CheckpointRecord:
    """Write the state to a file, completely or not at all. Returns its record. A full disk stops the study."""
    whose = {"run": f"{run.label} ({run.identity})"}  # one entry only: safetensors writes several in no fixed order
    # Copies: safetensors refuses tensors that share memory (gradients in slots may) or are not contiguous.
    tensors = {name: value.clone(memory_format=torch.contiguous_format) for name, value in state.tensors().items()}
    tensors[POSITION] = torch.tensor([state.epoch, state.steps])
    content = safetensors.torch.save(tensors, whose)
    target = folder / CHECKPOINTS / f"{run.identity}-{state.epoch}.safetensors"
    try:
        files.write(target, content)
    except TiebreakError as error:
        raise StopStudyError(str(error)) from error
    return CheckpointRecord(
        identity=run.identity,
        trajectory=run.trajectory,
        epoch=state.epoch,
        file=target.name,
        sha256=hashlib.sha256(content).hexdigest(),
    )


def restore(folder: Path, record: CheckpointRecord, state: State) -> None:
    """Load a checkpoint into `state`. Raises TiebreakError if the file is not the one that was written."""
    path = folder / CHECKPOINTS / record.file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TiebreakError(f"{path}: {error.strerror}") from None
    if hashlib.sha256(content).hexdigest() != record.sha256:
        raise TiebreakError(f"{path}: damaged, its sha256 is not the recorded one")
    stored = safetensors.torch.load(content)
    epoch, steps = stored[POSITION].tolist()
    if epoch != record.epoch:
        raise TiebreakError(f"{path}: holds epoch {epoch}, not the recorded {record.epoch}")
    for name, tensor in state.tensors().items():
        tensor.copy_(stored[name])
    state.epoch, state.steps = epoch, steps
