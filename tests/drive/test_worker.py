from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from support.job_messages import checkpoints, do, epochs_of, numbers
from support.small_study import cohort_job, make_job, one_epoch, one_run, one_thread, write_data
from tiebreak.drive.messages import Abort, EpochDone, Message, Note, RunEnded, decode, encode_job
from tiebreak.drive.worker import do_job
from tiebreak.plan.runs import Run
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.results.record import Strategy
from tiebreak.tasks.interface import Split
from tiebreak.train import loop, trainer
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Tick

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
    do_job(make_job(run, folder, data), out)
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


def test_an_error_that_would_stop_every_run_ends_the_study(tmp_path: Path, data: Path) -> None:
    run = one_run(data)
    (changed,) = worked(run.model_copy(update={"checksum": "0" * 64}), tmp_path, data)
    assert isinstance(changed, Abort)
    assert "changed since the plan was made" in changed.text
    (tmp_path / "file").touch()
    (no_folder,) = worked(run, tmp_path / "file", data)
    assert isinstance(no_folder, Abort)
    assert "cannot be written" in no_folder.text
    assert "\n" not in no_folder.text


def test_a_driver_that_is_gone_ends_the_work(tmp_path: Path, data: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    out = os.fdopen(write, "w")
    with pytest.raises(BrokenPipeError):
        do_job(make_job(one_run(data), tmp_path, data), out)
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


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_run_continued_from_a_checkpoint_is_the_run_without_interruption(
    tmp_path: Path, data: Path, stop: int
) -> None:
    run = one_run(data)
    whole = do(make_job(run, tmp_path / "whole", data))
    parts = do(make_job(run, tmp_path / "parts", data), stop)
    rest = do(make_job(run, tmp_path / "parts", data, tuple(reversed(checkpoints(parts)))))
    assert len(checkpoints(rest)) == 3 - stop
    assert numbers(parts) + numbers(rest) == numbers(whole)


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path: Path, data: Path) -> None:
    run = one_run(data)
    whole = do(make_job(run, tmp_path / "whole", data))
    first, second = checkpoints(do(make_job(run, tmp_path, data), 2))
    (tmp_path / CHECKPOINTS / second.file).write_bytes(b"damaged")
    note, *rest = do(make_job(run, tmp_path, data, (second, first)))
    assert isinstance(note, Note)
    assert str(tmp_path / CHECKPOINTS / second.file) in note.text
    assert "the one before it" in note.text
    assert numbers(rest) == numbers(whole)[1:]


def test_a_run_without_a_whole_checkpoint_starts_over_and_says_so(tmp_path: Path, data: Path) -> None:
    run = one_run(data)
    whole = do(make_job(run, tmp_path / "whole", data))
    (only,) = checkpoints(whole[:1])
    note, *rest = do(make_job(run, tmp_path, data, (only,)))
    assert isinstance(note, Note)
    assert "starting over" in note.text
    assert numbers(rest) == numbers(whole)


def test_a_damaged_checkpoint_of_one_run_of_many_is_named_once(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "SAVE_SHARE", 1e9)  # saves every epoch
    run = one_run(data)
    runs = [run.model_copy(update={"seed": seed}) for seed in range(3)]
    parts = do(cohort_job(runs, tmp_path, data, strategy="fused"), 2)
    saved = [tuple(message.checkpoints[row] for message in reversed(epochs_of(parts))) for row in range(3)]
    (tmp_path / CHECKPOINTS / saved[1][0].file).write_bytes(b"damaged")
    messages = do(cohort_job(runs, tmp_path, data, strategy="fused", checkpoints=tuple(saved)))
    assert [type(message) for message in messages].count(Note) == 1
    trained = [(record.trajectory, record.epoch) for message in epochs_of(messages) for record in message.records]
    assert trained == [
        (runs[1].trajectory, 2),
        (runs[1].trajectory, 3),
        (runs[0].trajectory, 3),
        (runs[2].trajectory, 3),
    ]
    ends = [message.record for message in messages if isinstance(message, RunEnded)]
    assert [(end.status, end.epoch) for end in ends] == [("done", 3)] * 3
    assert {end.provenance["strategy"] for end in ends} == {"fused"}
    assert sorted(end.provenance["runs"] for end in ends) == ["1", "2", "2"]


@pytest.mark.parametrize("strategy", ["fused", "loop"])
def test_a_design_that_raises_fails_only_runs_of_its_group_that_have_not_ended(
    tmp_path: Path, data: Path, strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 0 diverges after its first epoch; from the second epoch on, training raises when seed 1 is in the group."""
    wild = one_run(data, fixed={"lr": 1e6})
    runs = [wild, *(one_run(data).model_copy(update={"seed": seed}) for seed in (1, 2))]
    for engine in (loop.Loop, Fused):
        plain = engine.train_epoch

        def raising(self: Any, split: Split, tick: Tick, plain: Any = plain) -> list[float]:
            own = self._runs if isinstance(self, Fused) else [self._run]
            states = self._states if isinstance(self, Fused) else [self._state]
            if states[0].epoch == 1 and any(run.seed == 1 for run in own):
                raise ValueError("a bug in the design")
            losses: list[float] = plain(self, split, tick)
            return losses

        monkeypatch.setattr(engine, "train_epoch", raising)
    messages = do(cohort_job(runs, tmp_path, data, strategy=strategy))
    ends = [message.record for message in messages if isinstance(message, RunEnded)]
    assert len(ends) == 3
    found = {end.identity: end for end in ends}
    assert found[runs[0].identity].status == "diverged"
    assert found[runs[1].identity].status == "failed"
    assert found[runs[1].identity].epoch == 1  # the epoch that it reached
    assert "ValueError: a bug in the design" in found[runs[1].identity].reason
    assert found[runs[2].identity].status == ("failed" if strategy == "fused" else "done")


RAISES = """
import sys
from pathlib import Path

from torch import nn
from tiebreak.errors import StopStudyError, TiebreakError

WHEN = {when!r}


class Raises(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.out = nn.Linear(shape.channels * shape.height * shape.width, shape.classes)
        if WHEN == "construction" and MARK.exists():
            {error}

    def forward(self, images):
        if self.training and WHEN == "forward" and MARK.exists():
            {error}
        if not self.training and WHEN == "evaluation" and MARK.exists() and len(images) > 2:
            {error}
        return self.out(images.flatten(1))


MARK = Path(__file__).with_name("mark")
DESIGNS = {{"raises": Raises}}
"""


def raising_run(folder: Path, data: Path, when: str, error: str) -> tuple[Run, Path]:
    """A run of a design that raises once the plan is made."""
    path = folder / "nets.py"
    path.write_text(RAISES.format(when=when, error=error), "utf-8")
    arms = [{"name": name, "design": "raises"} for name in ("still", "moved")]
    run = one_run(data, designs_from=str(path), arms=arms)
    (folder / "mark").touch()
    return run, path


@pytest.mark.parametrize("strategy", ["fused", "loop"])
@pytest.mark.parametrize(
    ("when", "error"),
    [
        ("construction", "raise TiebreakError('mine')"),
        ("forward", "raise TiebreakError('mine')"),
        ("forward", "raise OSError(28, 'mine')"),
        ("forward", "raise BrokenPipeError('mine')"),
        ("forward", "sys.exit('mine')"),
        ("forward", "open('/mine')"),
        ("evaluation", "raise ValueError('mine')"),
    ],
)
def test_whatever_a_design_raises_is_its_own_failure_with_file_and_line(
    tmp_path: Path, data: Path, when: str, error: str, strategy: Strategy
) -> None:
    run, path = raising_run(tmp_path, data, when, error)
    good = one_run(data, epochs=1)
    out = io.StringIO()
    do_job(cohort_job([run], tmp_path / "out", data, strategy=strategy, designs_from=str(path)), out)
    do_job(make_job(good, tmp_path / "out", data), out)
    bad_end, *_, good_end = messages(out.getvalue())
    assert isinstance(bad_end, RunEnded)
    assert (bad_end.record.status, bad_end.record.epoch) == ("failed", 0)
    lines = [number for number, text in enumerate(path.read_text("utf-8").splitlines(), 1) if error in text]
    assert "mine" in bad_end.record.reason
    assert any(f"{path}:{number}" in bad_end.record.reason for number in lines)
    assert isinstance(good_end, RunEnded)
    assert good_end.record.status == "done"


def test_a_design_that_raises_when_it_is_timed_fails(tmp_path: Path, data: Path) -> None:
    run, path = raising_run(tmp_path, data, "forward", "raise OSError(28, 'mine')")
    runs = [run.model_copy(update={"seed": seed}) for seed in range(2)]
    out = io.StringIO()
    do_job(cohort_job(runs, tmp_path / "out", data, work="measure", designs_from=str(path)), out)
    ends = messages(out.getvalue())
    assert [end.record.identity for end in ends if isinstance(end, RunEnded)] == [each.identity for each in runs]


def test_runs_that_ended_before_an_out_of_memory_split_or_in_another_group_do_not_fail(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four runs do not fit and are halved; the second half raises in its second epoch."""
    runs = [one_run(data).model_copy(update={"seed": seed}) for seed in range(4)]
    plain = Fused.train_epoch

    def raising(self: Fused, split: Split, tick: Tick) -> list[float]:
        if len(self._runs) == 4:
            raise torch.OutOfMemoryError("no room")
        if self._runs[0].seed == 2 and self._states[0].epoch == 1:
            raise OSError("a bug in the design")
        return plain(self, split, tick)

    monkeypatch.setattr(Fused, "train_epoch", raising)
    note, *rest = do(cohort_job(runs, tmp_path, data, strategy="fused"))
    assert isinstance(note, Note)
    ends = [message.record for message in rest if isinstance(message, RunEnded)]
    assert [(end.identity, end.status, end.epoch) for end in ends] == [
        (run.identity, "done", 3) if run.seed < 2 else (run.identity, "failed", 1) for run in runs
    ]
