"""Where a run of a program keeps its things in the results folder: its own folder {out}, its output, its process.

They are named by the run's identity, so that a run that was interrupted finds its folder again.
"""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path, PurePosixPath

import psutil

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.results.record import PROGRAM_RUNS
from tiebreak.text import one_line, printable

RUN_VARIABLE = "TIEBREAK_RUN"  # in the environment of a run's processes: its folder
TAIL_LINES = 20
TAIL_BYTES = 8192
END_SECONDS = 5.0


class RunFolder:
    """The files of one run."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._runs = folder.resolve() / PROGRAM_RUNS
        self.out = self._runs / identity
        self.log = self._runs / f"{identity}.log"
        self.process_file = self._runs / f"{identity}.process"

    def prepare(self, *stale: str | None) -> int:
        """Make the folder, or find it again; remove earlier results by name, so that they are not taken for new ones.

        Returns the size of the output so far.
        """
        for path in (self._runs, self.out, self.log, self.process_file):
            if path.is_symlink():
                raise TiebreakError(f"{path}: a symbolic link, which is not followed here; remove it")
        files.check_regular(self.log)
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            for name in stale:
                self._remove(name or "")
            with self.log.open("ab") as log:
                log.write(f"[tiebreak] started {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
                return log.tell()
        except OSError as error:
            raise files.failure(self.out, "cannot be prepared for a run", error) from None

    def _remove(self, name: str) -> None:
        """Remove a file of {out}, or a folder in its place. Behind a link nothing is removed, nor read later."""
        path, parts = self.out, PurePosixPath(name).parts
        for part in parts[:-1]:
            path = path / part
            if path.is_symlink() or not path.is_dir():
                return
        for last in parts[-1:]:
            if (path / last).is_dir() and not (path / last).is_symlink():
                shutil.rmtree(path / last)
            else:
                (path / last).unlink(missing_ok=True)

    def tail(self, start: int) -> str:
        """The last lines of the output since `start`, safe to print; or why there are none."""
        try:
            with files.inside(self._runs, self.log.name).open("rb") as log:
                end = log.seek(0, 2)
                log.seek(max(start, end - TAIL_BYTES))
                lines = log.read().decode("utf-8", errors="replace").splitlines()
        except (OSError, TiebreakError) as error:  # the program can do anything to it
            return f"[tiebreak] its output cannot be read: {one_line(error, 200)}"
        return "\n".join(printable(line.rpartition("\r")[2])[:500] for line in lines[-TAIL_LINES:])

    def end_leftover(self) -> bool:
        """End what still runs of an earlier attempt whose supervisor was killed: {out} has one writer.

        Processes are known by their environment, which they inherit: no number can be mistaken.
        """
        if not self.process_file.exists():
            return False
        found = [process for process in psutil.process_iter() if _is_of(process, self.out)]
        for process in found:
            with suppress(psutil.Error):
                process.terminate()
        for process in psutil.wait_procs(found, END_SECONDS)[1]:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, END_SECONDS)
        self.process_file.unlink(missing_ok=True)
        return bool(found)


def _is_of(process: psutil.Process, out: Path) -> bool:
    try:
        return process.environ().get(RUN_VARIABLE) == str(out)
    except (psutil.Error, OSError):  # somebody else's, or gone
        return False
