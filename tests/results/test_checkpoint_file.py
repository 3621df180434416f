from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from support.hand_made import CHECKPOINT
from tiebreak.errors import TiebreakError
from tiebreak.results.checkpoint_file import CHECKPOINTS, POSITION, RUN, checkpoint_problem, read_checkpoint
from tiebreak.results.record import CheckpointRecord


def write(folder: Path, content: bytes) -> CheckpointRecord:
    (folder / CHECKPOINTS).mkdir(exist_ok=True)
    (folder / CHECKPOINTS / CHECKPOINT.file).write_bytes(content)
    return replace(CHECKPOINT, sha256=hashlib.sha256(content).hexdigest())


def state(run: str = "cnn default seed 0 (run)", epoch: int = 1) -> bytes:
    tensors = {"a": np.zeros(3), POSITION: np.array([epoch, 12]), "z": np.ones(2)}
    return safetensors.numpy.save(tensors, {RUN: run})


def test_the_file_of_a_record_is_read(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path, write(tmp_path, state())) == state()
    assert checkpoint_problem(tmp_path, write(tmp_path, state())) == ""


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (state(run="cnn default seed 1 (other)"), "another run"),
        (state(epoch=2), "epoch 2"),
        (b"", "no checkpoint"),
        (b"\xff" * 100, "no checkpoint"),
        (safetensors.numpy.save({"a": np.zeros(1)}), "no checkpoint"),
    ],
)
def test_a_file_that_is_not_of_this_run_is_named(tmp_path: Path, content: bytes, word: str) -> None:
    record = write(tmp_path, content)
    assert word in checkpoint_problem(tmp_path, record)
    assert CHECKPOINT.file in checkpoint_problem(tmp_path, record)


def test_a_changed_and_a_missing_file_are_named(tmp_path: Path) -> None:
    record = write(tmp_path, state())
    assert "sha256" in checkpoint_problem(tmp_path, replace(record, sha256="00"))
    (tmp_path / CHECKPOINTS / record.file).unlink()
    assert "missing" in checkpoint_problem(tmp_path, record)


@pytest.mark.parametrize("name", ["../plan.json", "/etc/passwd", "..", ".", "", "a/b"])
def test_a_record_never_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(TiebreakError, match="not the name of a file"):
        read_checkpoint(tmp_path, replace(CHECKPOINT, file=name))
