"""Worker processes of this machine: jobs out, messages in."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import IO

from tiebreak.errors import TiebreakError
from tiebreak.train.messages import Job, Message, decode, encode_job

Worker = subprocess.Popen[str]
Lines = queue.SimpleQueue[tuple[Worker, str]]


def run_jobs(jobs: Sequence[Job], workers: int) -> Generator[Message, None, None]:
    """The messages of all jobs, as they come. Workers are stopped when the iterator is closed, whatever the reason."""
    waiting = list(reversed(jobs))
    lines: Lines = queue.SimpleQueue()
    everyone: list[Worker] = []
    try:
        for _ in range(min(workers, len(jobs))):
            everyone.append(_start(lines))
            _give(everyone[-1], waiting)
        busy = set(everyone)
        while busy:
            worker, line = lines.get()
            if line.strip():
                yield decode(line)
            elif line and waiting:
                _give(worker, waiting)
            elif worker in busy:
                busy.discard(worker)
                _finish(worker, expected=bool(line))
    finally:
        for worker in everyone:
            worker.kill()
            with suppress(BrokenPipeError):  # a job that a dead worker did not read
                _pipe(worker.stdin).close()
            worker.wait()


def _start(lines: Lines) -> Worker:
    command = [sys.executable, "-m", "tiebreak.train.worker"]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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
        return  # the worker died: its reader says so, and `_finish` tells why


def _finish(worker: Worker, *, expected: bool) -> None:
    """Close a worker that has nothing left to do; one that ended on its own died in the middle of a job."""
    if expected:
        _pipe(worker.stdin).close()
    code = worker.wait()
    if not expected:
        memory = " (out of memory?)" if code == -signal.SIGKILL else ""
        ended = f"was killed by signal {-code}{memory}" if code < 0 else f"ended with code {code}"
        raise TiebreakError(f"a worker process {ended}; run the same command again to continue")


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
