"""A study that trains on a GPU while other work compiles, and stands still while times are taken."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path


class Beside:
    """A command in a session of its own, which outlives the program that started it and is found again by a file."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.log = place.with_suffix(".log")

    def start(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        """Start it, unless it is running already."""
        if self.running():
            return
        self._place.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            process = subprocess.Popen(
                command, cwd=folder, env=dict(environment), stdout=output, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self._place.write_text(str(process.pid), "utf-8")

    def running(self) -> bool:
        """Whether it has not ended."""
        if not self._place.is_file():
            return False
        pid = int(self._place.read_text("utf-8"))
        with suppress(ChildProcessError):  # an earlier program's child
            os.waitpid(pid, os.WNOHANG)
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False

    @contextmanager
    def still(self) -> Iterator[None]:
        """Inside, it does nothing: all its processes are stopped."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, what: signal.Signals) -> None:
        if self.running():
            os.killpg(int(self._place.read_text("utf-8")), what)
