"""Checkpoints: the complete state of a run in one safetensors file, which is replaced atomically."""

from __future__ import annotations

import hashlib
from pathlib import Path

import safetensors
import safetensors.torch
import torch

from tiebreak import files
from tiebreak.errors import StopStudyError, TiebreakError
from tiebreak.plan.runs import Run
from tiebreak.results.checkpoint_file import POSITION, RUN, checkpoint_folder, read_checkpoint
from tiebreak.results.record import CheckpointRecord
from tiebreak.text import one_line
from tiebreak.train.step import State


def save(folder: Path, run: Run, state: State) -> CheckpointRecord:
    """Write the state to a file, completely or not at all. Returns its record. A full disk stops the study."""
    whose = {RUN: f"{run.label} ({run.identity})"}  # one entry only: safetensors writes several in no fixed order
    # Copies: safetensors refuses tensors that share memory (gradients in slots may) or are not contiguous.
    tensors = {name: value.clone(memory_format=torch.contiguous_format) for name, value in state.tensors().items()}
    tensors[POSITION] = torch.tensor([state.epoch, state.steps])
    content = safetensors.torch.save(tensors, whose)
    target = checkpoint_folder(folder) / f"{run.identity}-{state.epoch}.safetensors"
    if not folder.exists():
        raise StopStudyError(f"{folder}: removed while the study was running; run the same command to train it again")
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
    """Load a checkpoint into `state`. Raises TiebreakError if the file is not the one that was written for its run."""
    try:
        stored = safetensors.torch.load(read_checkpoint(folder, record))
    except safetensors.SafetensorError as error:
        raise TiebreakError(f"{folder}: {record.file}: no checkpoint of Tiebreak ({one_line(error, 100)})") from None
    tensors = state.tensors()
    position = stored[POSITION]
    if position.dtype != torch.int64 or position.shape != (2,):
        raise TiebreakError(f"{folder}: {record.file}: no checkpoint of Tiebreak: {POSITION} is not epoch and steps")
    for name, tensor in tensors.items():
        found = stored.get(name)
        if found is None or found.shape != tensor.shape or found.dtype != tensor.dtype:
            raise TiebreakError(
                f"{folder}: {record.file}: not a state of this network: {name} is missing or of another shape or type"
            )
    for name, tensor in tensors.items():
        tensor.copy_(stored[name])
    state.epoch, state.steps = position.tolist()
