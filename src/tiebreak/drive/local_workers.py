"""Worker processes on this machine: jobs go out, messages come in."""

from __future__ import annotations

import queue
import subprocess
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Self

from tiebreak.drive.assignment import Assignment
from tiebreak.drive.messages import Job, Message, decode, encode_job
from tiebreak.system import python, was_killed

MOST_WAITING = 512  # lines that the driver has not taken: then the workers wait, instead of its memory growing
DRAIN_SECONDS = 1.0  # for the readers of stopped workers to end; a process that a worker left behind may hold its pipe

Worker = subprocess.Popen[str]
Lines = queue.Queue[tuple[Worker, str]]


class Pool:
    """Worker processes, started when they are needed and reused: starting one takes seconds.

    For a GPU, where it takes longer, the first one is started before there is work: it gets ready meanwhile
    (`warm_up`). Leaving the pool stops them, also after an error.
    """

    def __init__(self, workers: int, device: str = "cpu") -> None:
        self._workers, self._device = workers, device
        self._started: list[Worker] = []
        self._lines: Lines = queue.Queue(MOST_WAITING)
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Self:
        """On a CPU no process is started before there is work: the plan needs the cores."""
        if self._device != "cpu":
            self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop every worker, idle or not."""
        self._stop(self._started)
        end = time.monotonic() + DRAIN_SECONDS
        while any(reader.is_alive() for reader in self._readers) and time.monotonic() < end:
            with suppress(queue.Empty):  # a reader may wait for room
                self._lines.get(timeout=0.01)

    @property
    def slots(self) -> int:
        """How many jobs can run at a time."""
        return self._workers

    def run(self, jobs: Sequence[Job], at_most: int | None = None) -> Generator[list[Message], None, None]:
        """The messages of all jobs in the order of their arrival, those together that have arrived meanwhile.

        `at_most` limits the number of workers.
        A worker that dies is replaced, and its job is tried again (`Assignment`). Closing the iterator stops the
        workers that have an unfinished job.
        """
        waiting = [Assignment(job) for job in reversed(jobs)]
        needed = min(self._workers if at_most is None else at_most, len(jobs))
        for worker in [each for each in self._started if each.poll() is not None]:
            self._remove(worker)  # it died while it had no job
        while len(self._started) < needed:
            self._start()
        busy: dict[Worker, Assignment] = {}
        try:
            for worker in self._started[:needed]:
                busy[worker] = _send(worker, waiting.pop())
            while busy:
                lines = self._arrived()
                messages = [(worker, decode(line)) for worker, line in lines if line.strip()]
                if messages:
                    yield [message for _, message in messages]  # they are stored when the driver asks for more
                for worker, message in messages:
                    busy[worker].note(message)
                for worker, line in lines:
                    if not line:
                        yield from self._replace(worker, busy, waiting)
                    elif not line.strip() and waiting:
                        busy[worker] = _send(worker, waiting.pop())
                    elif not line.strip():
                        del busy[worker]
        finally:
            self._stop([worker for worker in self._started if worker in busy])

    def _arrived(self) -> list[tuple[Worker, str]]:
        """The lines that have arrived; waits for the first. Those of workers that were stopped are dropped."""
        lines = [self._lines.get()]
        with suppress(queue.Empty):
            while len(lines) < MOST_WAITING:
                lines.append(self._lines.get_nowait())
        return [(worker, line) for worker, line in lines if worker in self._started]

    def _replace(
        self, worker: Worker, busy: dict[Worker, Assignment], waiting: list[Assignment]
    ) -> Generator[list[Message], None, None]:
        """Clean up after a worker that died. If it had a job, a new worker continues with it, or with the next one."""
        code = self._remove(worker)
        if worker not in busy:
            return
        assignment = busy.pop(worker)
        yield list(assignment.note_death(_description(code)))
        if not assignment.finished:
            waiting.append(assignment)
        if waiting:
            new = self._start()
            busy[new] = _send(new, waiting.pop())

    def _start(self) -> Worker:
        worker = subprocess.Popen(
            [*python("tiebreak.drive.worker"), self._device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._started.append(worker)
        self._readers = [reader for reader in self._readers if reader.is_alive()]
        self._readers.append(threading.Thread(target=_read, args=(worker, self._lines), daemon=True))
        self._readers[-1].start()
        return worker

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
