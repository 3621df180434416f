from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from support.small_study import cohort_job, make_job, one_epoch, one_run, one_thread, worker_processes, write_data
from tiebreak.drive.local_workers import Lines, Pool, _read
from tiebreak.drive.messages import EpochDone, Job, Message, Note, RunEnded
from tiebreak.drive.worker import train


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


def received(batches: Iterable[list[Message]]) -> list[Message]:
    return [message for batch in batches for message in batch]


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
        messages = received(pool.run(jobs))
    ends = {item.record.identity: item.record for item in messages if isinstance(item, RunEnded)}
    assert {ends[run.identity].status for run in good} == {"done"}
    assert ends[bad.identity].status == "failed"
    assert "width" in ends[bad.identity].reason
    here = [message for job in jobs[1:] for message in train(job, lambda message: None)]
    assert losses(messages) == losses(here)  # a process of its own changes no number
    assert not worker_processes()


KILLS = """
import os, signal, sys
from pathlib import Path

from torch import nn

HERE = Path(__file__).parent


class Kills(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.out = nn.Linear(shape.channels * shape.height * shape.width, shape.classes)

    def forward(self, images):
        in_worker = sys.argv[0].endswith("worker.py")  # not where the plan is made
        second_epoch_saved = any((HERE / "out" / "checkpoints").glob("*-2.safetensors"))
        if self.training and in_worker and second_epoch_saved and (HERE / "kill").exists():
            if (HERE / "kill").read_text() == "once":
                (HERE / "kill").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.out(images.flatten(1))


DESIGNS = {"kills": Kills}
"""


def killing_job(folder: Path, data: Path, kill: str) -> Job:
    """Two runs of a design that kills its process in the third epoch, as one job."""
    path = folder / "nets.py"
    path.write_text(KILLS, "utf-8")
    arms = [{"name": name, "design": "kills"} for name in ("still", "moved")]
    run = one_run(data, designs_from=str(path), arms=arms)
    if kill:
        (folder / "kill").write_text(kill)
    runs = [run, run.model_copy(update={"seed": 1})]
    return cohort_job(runs, folder / "out", data, designs_from=str(path))


def test_a_job_whose_worker_is_killed_once_continues_from_its_checkpoint(tmp_path: Path, data: Path) -> None:
    job = killing_job(tmp_path, data, "once")
    with Pool(1) as pool:
        messages = received(pool.run([job]))
    assert not worker_processes()
    (note,) = [message for message in messages if isinstance(message, Note)]
    assert "signal 9" in note.text
    assert "memory" in note.text
    ends = [message.record.status for message in messages if isinstance(message, RunEnded)]
    assert ends == ["done", "done"]
    epochs = [one_epoch(message)[0].epoch for message in messages if isinstance(message, EpochDone)]
    assert epochs == [1, 2, 3, 1, 2, 3]  # none is trained twice
    undisturbed = list(train(job, lambda message: None))
    assert losses(messages) == losses(undisturbed)


def test_a_job_whose_workers_are_always_killed_fails_and_the_others_go_on(tmp_path: Path, data: Path) -> None:
    job = killing_job(tmp_path, data, "always")
    good = make_job(one_run(data, epochs=1), tmp_path / "out", data)
    with Pool(1) as pool:
        messages = received(pool.run([job, good]))
        assert len(worker_processes()) == 1
    assert len([message for message in messages if isinstance(message, Note)]) == 2
    first, second, last = [message.record for message in messages if isinstance(message, RunEnded)]
    assert [end.status for end in (first, second, last)] == ["failed", "failed", "done"]
    assert (first.epoch, second.epoch) == (2, 0)
    assert "signal 9" in first.reason
    assert "3 times" in first.reason


def test_for_a_gpu_a_worker_starts_before_there_is_work() -> None:
    with Pool(2, "cuda"):
        assert len(worker_processes()) == 1
    assert not worker_processes()


def test_workers_stay_for_the_next_jobs_and_are_gone_when_nobody_wants_their_messages(
    tmp_path: Path, data: Path
) -> None:
    jobs = [make_job(one_run(data, epochs=1).model_copy(update={"seed": seed}), tmp_path, data) for seed in range(4)]
    with Pool(2) as pool:
        first = losses(received(pool.run(jobs[:2], at_most=1)))
        (alone,) = worker_processes()  # one at a time needs one process
        second = losses(received(pool.run(jobs[2:])))
        assert alone in worker_processes()
        assert len(worker_processes()) == 2
        assert len(first) == len(second) == 2
        messages = pool.run([make_job(one_run(data, epochs=1000), tmp_path, data)])
        next(messages)
        messages.close()
        assert len(worker_processes()) == 1  # the idle one
        (short,) = losses(received(pool.run(jobs[:1]))).values()
        assert len(short) == 1  # nothing of the job that was left reaches the next
    assert not worker_processes()


def test_a_worker_that_died_idle_is_replaced_and_an_error_stops_idle_workers_too(tmp_path: Path, data: Path) -> None:
    job = make_job(one_run(data, epochs=1), tmp_path, data)

    def interrupted() -> None:
        with Pool(1) as pool:
            received(pool.run([job]))
            os.kill(worker_processes()[0], signal.SIGKILL)
            assert len(losses(received(pool.run([job])))) == 1
            assert len(worker_processes()) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not worker_processes()


def test_half_a_message_of_a_dying_worker_is_no_message() -> None:
    lines: Lines = queue.Queue()
    script = "print('whole'); print('ha', end='', flush=True); import os; os._exit(1)"
    worker = subprocess.Popen([sys.executable, "-uc", script], stdout=subprocess.PIPE, text=True)
    _read(worker, lines)
    assert worker.wait() == 1
    assert [lines.get_nowait()[1] for _ in range(lines.qsize())] == ["whole\n", ""]


def test_no_jobs_need_no_workers() -> None:
    with Pool(4) as pool:
        assert received(pool.run([])) == []
        assert not worker_processes()
