"""Worker processes on this machine: jobs go out, messages come in."""

from __future__ import annotations

import queue
import signal
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Self

from tiebreak.drive.messages import Job, Message, decode, encode_job
from tiebreak.errors import TiebreakError
from tiebreak.system import python

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

    def run(self, jobs: Sequence[Job], at_most: int | None = None) -> Generator[Message, None, None]:
        """The messages of all jobs in the order of their arrival; `at_most` limits the number of workers.

        Closing the iterator stops the workers that have an unfinished job.
        """
        waiting = list(reversed(jobs))
        needed = min(self._workers if at_most is None else at_most, len(jobs))
        while len(self._started) < needed:
            self._started.append(_start(self._lines))
        busy = set(self._started[:needed])
        try:
            for worker in self._started[:needed]:
                _send_next(worker, waiting)
            while busy:
                worker, line = self._lines.get()
                if worker not in self._started:
                    continue  # it was stopped during an earlier job: its last messages are dropped
                if line.strip():
                    yield decode(line)
                elif not line:
                    self._started.remove(worker)
                    _reap(worker, busy=worker in busy)
                elif waiting:
                    _send_next(worker, waiting)
                else:
                    busy.discard(worker)
        finally:
            self._stop([worker for worker in self._started if worker in busy])

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


def _send_next(worker: Worker, waiting: list[Job]) -> None:
    pipe = _pipe(worker.stdin)
    try:
        pipe.write(encode_job(waiting.pop()) + "\n")
        pipe.flush()
    except BrokenPipeError:
        return  # the worker died: its reader will report the end of its output, and `_reap` the reason


def _reap(worker: Worker, *, busy: bool) -> None:
    """Clean up after a worker that ended by itself. If it had a job, the study ends with an error."""
    with suppress(BrokenPipeError):
        _pipe(worker.stdin).close()
    code = worker.wait()
    if busy:
        memory = " (out of memory?)" if code == -signal.SIGKILL else ""
        ended = f"was killed by signal {-code}{memory}" if code < 0 else f"ended with code {code}"
        raise TiebreakError(f"a worker process {ended}; run the same command again to continue")


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
