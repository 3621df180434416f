from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.small_study import make_job, one_epoch, one_run, one_thread, worker_processes, write_data
from tiebreak.drive.local_workers import Lines, Pool, _read
from tiebreak.drive.messages import EpochDone, Message, RunEnded
from tiebreak.drive.worker import train
from tiebreak.errors import TiebreakError


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


def losses(messages: list[Message]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for message in messages:
        if isinstance(message, EpochDone):
            record, checkpoint = one_epoch(message)
            found.setdefault(checkpoint.identity, []).append(record.metrics["train_loss"])
    return found


def test_a_design_that_raises_does_not_stop_the_others(tmp_path: Path, data: Path) -> None:
    good = [one_run(data).model_copy(update={"seed": seed}) for seed in range(3)]
    bad = good[0].model_copy(update={"build": {"width": 3}})
    jobs = [make_job(run, tmp_path, data) for run in (bad, *good)]
    with Pool(2) as pool:
        messages = list(pool.run(jobs))
    ends = {item.record.identity: item.record for item in messages if isinstance(item, RunEnded)}
    assert {ends[run.identity].status for run in good} == {"done"}
    assert ends[bad.identity].status == "failed"
    assert "width" in ends[bad.identity].reason
    here = [message for job in jobs[1:] for message in train(job, lambda message: None)]
    assert losses(messages) == losses(here)  # a process of its own changes no number
    assert not worker_processes()


def test_a_worker_that_is_killed_stops_the_study_with_one_line(tmp_path: Path, data: Path) -> None:
    job = make_job(one_run(data, epochs=1000), tmp_path, data)
    with Pool(2) as pool:
        messages = pool.run([job, job])
        next(messages)
        os.kill(worker_processes()[0], signal.SIGKILL)
        with pytest.raises(TiebreakError) as caught:
            list(messages)
    assert str(caught.value).startswith("a worker process was killed by signal 9")
    assert "\n" not in str(caught.value)
    assert not worker_processes()


def test_workers_are_gone_when_the_messages_are_no_longer_wanted(tmp_path: Path, data: Path) -> None:
    with Pool(1) as pool:
        messages = pool.run([make_job(one_run(data, epochs=1000), tmp_path, data)])
        next(messages)
        assert len(worker_processes()) == 1
        messages.close()
        assert not worker_processes()
        (short,) = losses(list(pool.run([make_job(one_run(data, epochs=1), tmp_path, data)]))).values()
        assert len(short) == 1  # nothing of the job that was left reaches the next
    assert not worker_processes()


def test_workers_stay_for_the_next_jobs(tmp_path: Path, data: Path) -> None:
    jobs = [make_job(one_run(data, epochs=1).model_copy(update={"seed": seed}), tmp_path, data) for seed in range(4)]
    with Pool(2) as pool:
        first = losses(list(pool.run(jobs[:2], at_most=1)))
        (alone,) = worker_processes()  # one at a time needs one process
        second = losses(list(pool.run(jobs[2:])))
        assert alone in worker_processes()
        assert len(worker_processes()) == 2
    assert not worker_processes()
    assert len(first) == len(second) == 2


def test_an_error_in_between_stops_idle_workers_too(tmp_path: Path, data: Path) -> None:
    def interrupted() -> None:
        with Pool(1) as pool:
            list(pool.run([make_job(one_run(data, epochs=1), tmp_path, data)]))
            assert worker_processes()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not worker_processes()


def test_a_worker_that_died_idle_is_told_when_it_is_needed(tmp_path: Path, data: Path) -> None:
    job = make_job(one_run(data, epochs=1), tmp_path, data)
    with Pool(1) as pool:
        list(pool.run([job]))
        os.kill(worker_processes()[0], signal.SIGKILL)
        with pytest.raises(TiebreakError, match="a worker process was killed by signal 9"):
            list(pool.run([job]))
        assert len(losses(list(pool.run([job])))) == 1  # a new one takes its place


def test_half_a_message_of_a_dying_worker_is_no_message() -> None:
    lines: Lines = queue.SimpleQueue()
    script = "print('whole'); print('ha', end='', flush=True); import os; os._exit(1)"
    worker = subprocess.Popen([sys.executable, "-uc", script], stdout=subprocess.PIPE, text=True)
    _read(worker, lines)
    assert worker.wait() == 1
    assert [lines.get_nowait()[1] for _ in range(lines.qsize())] == ["whole\n", ""]


def test_no_jobs_need_no_workers() -> None:
    with Pool(4) as pool:
        assert list(pool.run([])) == []
        assert not worker_processes()
