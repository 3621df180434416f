from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from support.small_study import make_job, one_epoch, one_run, one_thread, write_data
from tiebreak.drive.messages import EpochDone, Message, RunEnded, Stop, decode, encode_job
from tiebreak.drive.worker import work
from tiebreak.plan.runs import Run

LOUD = """
import os, sys
from tiebreak import catalog
from tiebreak.models.cnn import CnnStrided
from tiebreak.models.design import Design
from tiebreak.drive import worker

class Loud(CnnStrided):
    def forward(self, images):
        print("printed")
        sys.stdout.write("written without an end")
        os.write(1, b"\\n\\nraw\\n")
        return super().forward(images)

catalog.DESIGNS = {"cnn-strided": Design(name="cnn-strided", family="classifier", build=Loud)}
worker.main()
"""


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


def messages(text: str) -> list[Message]:
    return [decode(line) for line in text.splitlines()]


def worked(run: Run, folder: Path, data: Path) -> list[Message]:
    out = io.StringIO()
    work(make_job(run, folder, data), out)
    return messages(out.getvalue())


def test_a_job_becomes_lines(tmp_path: Path, data: Path) -> None:
    *epochs, end = worked(one_run(data), tmp_path, data)
    assert [type(message) for message in epochs] == [EpochDone] * 3
    assert isinstance(end, RunEnded)
    assert end.record.status == "done"


def test_a_design_that_raises_is_a_failed_run_with_a_reason(tmp_path: Path, data: Path) -> None:
    run = one_run(data).model_copy(update={"build": {"width": 3}})
    (end,) = worked(run, tmp_path, data)
    assert isinstance(end, RunEnded)
    assert (end.record.identity, end.record.trajectory) == (run.identity, run.trajectory)
    assert end.record.status == "failed"
    assert end.record.reason.startswith("TypeError: ")
    assert "unexpected keyword argument 'width'" in end.record.reason
    assert "design.py:" in end.record.reason
    assert "\n" not in end.record.reason


def test_an_error_while_training_is_a_failed_run(tmp_path: Path, data: Path) -> None:
    (end,) = worked(one_run(data).model_copy(update={"batch": -1}), tmp_path, data)
    assert isinstance(end, RunEnded)
    assert end.record.status == "failed"
    assert end.record.reason


def test_what_would_stop_every_run_is_a_stop(tmp_path: Path, data: Path) -> None:
    run = one_run(data)
    (changed,) = worked(run.model_copy(update={"checksum": "0" * 64}), tmp_path, data)
    assert isinstance(changed, Stop)
    assert "changed since the plan was made" in changed.text
    (tmp_path / "file").touch()
    (no_folder,) = worked(run, tmp_path / "file", data)
    assert isinstance(no_folder, Stop)
    assert "cannot be written" in no_folder.text
    assert "\n" not in no_folder.text


def test_a_driver_that_is_gone_ends_the_work(tmp_path: Path, data: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    out = os.fdopen(write, "w")
    with pytest.raises(BrokenPipeError):
        work(make_job(one_run(data), tmp_path, data), out)
    with suppress(BrokenPipeError):
        out.close()


def test_what_a_design_prints_does_not_reach_the_messages(tmp_path: Path, data: Path) -> None:
    run = one_run(data, epochs=1)
    jobs = "".join(encode_job(make_job(run, tmp_path / name, data)) + "\n" for name in ("a", "b"))
    done = subprocess.run([sys.executable, "-c", LOUD], input=jobs, capture_output=True, text=True, check=True)
    first, second, rest = done.stdout.split("\n\n")  # an empty line after each job
    assert rest == ""
    quiet = worked(run, tmp_path / "quiet", data)
    for lines in (first, second):
        epoch, end = messages(lines)
        assert isinstance(end, RunEnded)
        (record, state), (quiet_record, quiet_state) = one_epoch(epoch), one_epoch(quiet[0])
        assert record.metrics == quiet_record.metrics
        assert state == quiet_state
    assert "printed" in done.stderr
    assert "raw" in done.stderr
