"""Worker processes of this machine: jobs out, messages in."""

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
    """Worker processes, started when there is work for them and kept for the next: starting one takes seconds.

    They are stopped when the pool is left, whatever the reason.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._everyone: list[Worker] = []
        self._lines: Lines = queue.SimpleQueue()

    def __enter__(self) -> Self:
        """No process is started before there is work."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop every worker, idle or not."""
        self._stop(self._everyone)

    def run(self, jobs: Sequence[Job], at_most: int | None = None) -> Generator[Message, None, None]:
        """The messages of all jobs, as they come, with `at_most` so many workers.

        Workers that are in the middle of a job when the iterator is closed are stopped.
        """
        waiting = list(reversed(jobs))
        wanted = min(self._workers if at_most is None else at_most, len(jobs))
        while len(self._everyone) < wanted:
            self._everyone.append(_start(self._lines))
        busy = set(self._everyone[:wanted])
        try:
            for worker in self._everyone[:wanted]:
                _give(worker, waiting)
            while busy:
                worker, line = self._lines.get()
                if worker not in self._everyone:
                    continue  # stopped in the middle of an earlier job: what it still said belongs to nobody
                if line.strip():
                    yield decode(line)
                elif not line:
                    self._everyone.remove(worker)
                    _bury(worker, missed=worker in busy)  # one that died while it was idle is not missed
                elif waiting:
                    _give(worker, waiting)
                else:
                    busy.discard(worker)
        finally:
            self._stop([worker for worker in self._everyone if worker in busy])

    def _stop(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            worker.kill()
        for worker in list(workers):
            with suppress(BrokenPipeError):  # a job that a dead worker did not read
                _pipe(worker.stdin).close()
            worker.wait()
            self._everyone.remove(worker)


def _start(lines: Lines) -> Worker:
    worker = subprocess.Popen(python("tiebreak.drive.worker"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    threading.Thread(target=_read, args=(worker, lines), daemon=True).start()
    return worker


def _read(worker: Worker, lines: Lines) -> None:
    """Forward a worker's lines (not half of one that it died in); an empty string says that there will be no more."""
    with _pipe(worker.stdout) as pipe:
        for line in pipe:
            if line.endswith("\n"):
                lines.put((worker, line))
    lines.put((worker, ""))


def _give(worker: Worker, waiting: list[Job]) -> None:
    pipe = _pipe(worker.stdin)
    try:
        pipe.write(encode_job(waiting.pop()) + "\n")
        pipe.flush()
    except BrokenPipeError:
        return  # the worker died: its reader says so, and `_bury` tells why


def _bury(worker: Worker, *, missed: bool) -> None:
    """Reap a worker that ended on its own; one that had a job takes the study with it."""
    with suppress(BrokenPipeError):
        _pipe(worker.stdin).close()
    code = worker.wait()
    if missed:
        memory = " (out of memory?)" if code == -signal.SIGKILL else ""
        ended = f"was killed by signal {-code}{memory}" if code < 0 else f"ended with code {code}"
        raise TiebreakError(f"a worker process {ended}; run the same command again to continue")


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
