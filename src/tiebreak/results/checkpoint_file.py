"""Whether a checkpoint's file is the one that its record describes: its bytes, its run and its epoch. No torch.

A safetensors file begins with the length of a JSON header (8 bytes, little-endian) and the header, which names the
run and says where each tensor lies.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.files import failure, inside
from tiebreak.results.record import CheckpointRecord

CHECKPOINTS = "checkpoints"
POSITION = "position"  # the tensor with the epochs and steps completed
RUN = "run"  # the key of the metadata that names the run: "LABEL (IDENTITY)"


def checkpoint_path(folder: Path, record: CheckpointRecord) -> Path:
    """Where a checkpoint lies: in the folder of checkpoints, whatever its record says."""
    return inside(checkpoint_folder(folder), record.file)


def checkpoint_folder(folder: Path) -> Path:
    """The folder of the checkpoints in a results folder. A link in its place is refused: what it names is not ours."""
    path = folder / CHECKPOINTS
    if path.is_symlink():
        raise TiebreakError(f"{path}: a symbolic link, which is not followed; remove it, or give another --out folder")
    return path


def read_checkpoint(folder: Path, record: CheckpointRecord) -> bytes:
    """The bytes of a checkpoint. Raises TiebreakError if the file is not the one that was written for this run."""
    path = checkpoint_path(folder, record)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise TiebreakError(f"{path}: missing") from None
    except OSError as error:
        raise failure(path, "cannot be read", error) from None
    if hashlib.sha256(content).hexdigest() != record.sha256:
        raise TiebreakError(f"{path}: damaged, its sha256 is not the recorded one")
    try:
        run, epoch = _describe(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise TiebreakError(f"{path}: no checkpoint of Tiebreak") from None
    if not run.endswith(f"({record.identity})"):
        raise TiebreakError(f"{path}: a checkpoint of another run, {run}, not of {record.identity}")
    if epoch != record.epoch:
        raise TiebreakError(f"{path}: holds epoch {epoch}, not the recorded {record.epoch}")
    return content


def checkpoint_problem(folder: Path, record: CheckpointRecord) -> str:
    """What is wrong with a checkpoint, in one line that names it; empty if nothing is."""
    try:
        read_checkpoint(folder, record)
    except TiebreakError as error:
        return str(error)
    return ""


def _describe(content: bytes) -> tuple[str, int]:
    """The run and the epoch that the file itself names."""
    length = int.from_bytes(content[:8], "little")
    header: dict[str, Any] = json.loads(content[8 : 8 + length])
    start, _ = header[POSITION]["data_offsets"]
    first = content[8 + length + start :][:8]  # the first of two int64
    return str(header["__metadata__"][RUN]), int.from_bytes(first, "little", signed=True)
