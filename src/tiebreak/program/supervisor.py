"""One run of a program: starts it in a process group of its own, and ends the whole group when it must.

The supervisor is a small process between the driver and the program. It reads one line of JSON, the order, and holds
its standard input open: when that ends, the driver is gone (even by kill -9), and the program's group is ended. It
writes one line of JSON, how the program ended. On Linux the program is also killed when the supervisor itself is, and
what the program has started in other process groups becomes the supervisor's child, so that it is ended too.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tiebreak.program.output_log import OutputLog
from tiebreak.system import adopt_orphans, end_children, end_group, end_with_parent, wait_without_reaping

GRACE_SECONDS = 5.0  # between the request to end and the end by force


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to run: the command, where, with which environment, where its output goes, and for how long."""

    command: list[str]
    folder: str
    environment: dict[str, str]  # set in addition to ours
    log: str
    process_file: str  # there while the program runs
    timeout: float | None = None  # seconds


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the program ended: its exit code (negative: the signal), or why it could not be started."""

    code: int
    seconds: float
    timed_out: bool = False
    problem: str = ""


class Supervised:
    """The running program. Whoever ends it, ends its group."""

    def __init__(self, order: Order) -> None:
        adopt_orphans()
        self._process = subprocess.Popen(
            order.command,
            cwd=order.folder,
            env={**os.environ, **order.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509 (there is no other thread yet)
        )
        assert self._process.stdout is not None
        self._output = OutputLog(self._process.stdout, Path(order.log))
        self._lock = threading.Lock()
        self._over = False
        self.timed_out = False
        Path(order.process_file).write_text(str(self._process.pid))

    def wait(self) -> int:
        """Wait for the end of the program; then end what it has started and left behind. Its exit code."""
        wait_without_reaping(self._process.pid)
        with self._lock:
            self._over = True
            end_group(self._process.pid, force=True)
            code = self._process.wait()
        end_children()
        self._output.finish()
        return code

    def forget(self, process_file: Path) -> None:
        """Remove the file that says that the program runs, unless a later attempt has replaced it."""
        if process_file.is_file() and process_file.read_text() == str(self._process.pid):
            process_file.unlink(missing_ok=True)

    def end(self, *, timed_out: bool = False) -> None:
        """Ask the group to end; by force after a while."""
        with self._lock:
            if self._over:
                return
            self.timed_out = timed_out
            end_group(self._process.pid, force=False)
        deadline = time.monotonic() + GRACE_SECONDS
        while not self._over and time.monotonic() < deadline:
            time.sleep(0.05)
        with self._lock:
            if not self._over:
                end_group(self._process.pid, force=True)


def supervise(order: Order) -> Ended:
    """Run the program to its end, to the time limit, or until our standard input ends."""
    started = time.monotonic()
    try:
        running = Supervised(order)
    except OSError as error:
        problem = f"cannot be started: {error.strerror or error} ({error.filename})"
        return Ended(code=-1, seconds=0.0, problem=problem)
    threading.Thread(target=_end_with_driver, args=(running,), daemon=True).start()
    timer = None
    if order.timeout is not None:
        timer = threading.Timer(order.timeout, running.end, kwargs={"timed_out": True})
        timer.daemon = True
        timer.start()
    code = running.wait()
    if timer is not None:
        timer.cancel()
    running.forget(Path(order.process_file))
    return Ended(code=code, seconds=time.monotonic() - started, timed_out=running.timed_out)


def _end_with_driver(running: Supervised) -> None:
    while os.read(0, 4096):
        pass
    running.end()


def main() -> None:
    """Read the order, run it, say how it ended."""
    order = Order(**json.loads(_first_line()))
    if select.select([0], [], [], 0)[0]:
        sys.exit(1)  # the driver is gone already: nothing is started
    ended = supervise(order)
    try:
        os.write(1, json.dumps(asdict(ended)).encode() + b"\n")
    except BrokenPipeError:
        sys.exit(1)  # the driver is gone


def _first_line() -> bytes:
    """The first line of standard input, read without a buffer: what follows is the end of the driver."""
    found = b""
    while not found.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            sys.exit(1)
        found += piece
    return found


if __name__ == "__main__":
    main()
