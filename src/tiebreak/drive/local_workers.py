"""Worker processes on this machine: jobs go out, messages come in."""

from __future__ import annotations

import queue
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Self

from tiebreak.drive.assignment import Assignment
from tiebreak.drive.messages import Job, Message, decode, encode_job
from tiebreak.system import python, was_killed

Worker = subprocess.Popen[str]
Lines = queue.SimpleQueue[tuple[Worker, str]]


class Pool:
    """Worker processes, started when they are needed and reused: starting one takes seconds.

    Leaving the pool stops them, also after an error.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._started: list[Worker] = []
        self._lines: Lines = queue.SimpleQueue()

    def __enter__(self) -> Self:
        """No process is started before there is work."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop every worker, idle or not."""
        self._stop(self._started)

    @property
    def slots(self) -> int:
        """How many jobs can run at a time."""
        return self._workers

    def run(self, jobs: Sequence[Job], at_most: int | None = None) -> Generator[Message, None, None]:
        """The messages of all jobs in the order of their arrival; `at_most` limits the number of workers.

        A worker that dies is replaced, and its job is tried again (`Assignment`). Closing the iterator stops the
        workers that have an unfinished job.
        """
        waiting = [Assignment(job) for job in reversed(jobs)]
        needed = min(self._workers if at_most is None else at_most, len(jobs))
        for worker in [each for each in self._started if each.poll() is not None]:
            self._remove(worker)  # it died while it had no job
        while len(self._started) < needed:
            self._started.append(_start(self._lines))
        busy: dict[Worker, Assignment] = {}
        try:
            for worker in self._started[:needed]:
                busy[worker] = _send(worker, waiting.pop())
            while busy:
                worker, line = self._lines.get()
                if worker not in self._started:
                    continue  # it was stopped during an earlier job: its last messages are dropped
                if line.strip():
                    message = decode(line)
                    yield message  # the driver has stored it when it asks for the next one
                    busy[worker].note(message)
                elif not line:
                    yield from self._replace(worker, busy, waiting)
                elif waiting:
                    busy[worker] = _send(worker, waiting.pop())
                else:
                    del busy[worker]
        finally:
            self._stop([worker for worker in self._started if worker in busy])

    def _replace(
        self, worker: Worker, busy: dict[Worker, Assignment], waiting: list[Assignment]
    ) -> Generator[Message, None, None]:
        """Clean up after a worker that died. If it had a job, a new worker continues with it, or with the next one."""
        code = self._remove(worker)
        if worker not in busy:
            return
        assignment = busy.pop(worker)
        yield from assignment.note_death(_description(code))
        if not assignment.finished:
            waiting.append(assignment)
        if waiting:
            new = _start(self._lines)
            self._started.append(new)
            busy[new] = _send(new, waiting.pop())

    def _remove(self, worker: Worker) -> int:
        """Forget a worker that ended by itself. Returns its exit code."""
        self._started.remove(worker)
        with suppress(BrokenPipeError):
            _pipe(worker.stdin).close()
        return worker.wait()

    def _stop(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            worker.kill()
        for worker in list(workers):
            with suppress(BrokenPipeError):  # a job that a dead worker did not read
                _pipe(worker.stdin).close()
            worker.wait()
            self._started.remove(worker)


def _start(lines: Lines) -> Worker:
    worker = subprocess.Popen(python("tiebreak.drive.worker"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    threading.Thread(target=_read, args=(worker, lines), daemon=True).start()
    return worker


def _read(worker: Worker, lines: Lines) -> None:
    """Forward a worker's complete lines; an empty string marks the end of its output."""
    with _pipe(worker.stdout) as pipe:
        for line in pipe:
            if line.endswith("\n"):
                lines.put((worker, line))
    lines.put((worker, ""))


def _send(worker: Worker, assignment: Assignment) -> Assignment:
    pipe = _pipe(worker.stdin)
    with suppress(BrokenPipeError):  # the worker died: its reader will report the end of its output
        pipe.write(encode_job(assignment.job) + "\n")
        pipe.flush()
    return assignment


def _description(code: int) -> str:
    """How a process ended, from its exit code."""
    if code >= 0:
        return f"ended with code {code}"
    memory = " (out of memory?)" if was_killed(code) else ""
    return f"was killed by signal {-code}{memory}"


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
