"""What a run at work says of itself while it trains: a small file in its folder, for readers beside it.

The store holds what has happened; this file says how fast it goes and how long it will take. It is replaced as a whole,
removed at the end, and nothing depends on it: after a kill it stays, and names a process that is no more.
"""

from __future__ import annotations

import os
import socket
import time
from functools import cache
from pathlib import Path
from typing import Annotated

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tiebreak import files
from tiebreak.errors import TiebreakError

LIVE_FILE = ".progress.json"
MOST_BYTES = 1 << 20
CLOCK = 5.0  # seconds by which a clock may be set
SILENCE = 120.0  # seconds after which a run on another machine is taken for dead

Positive = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, Field(max_length=1_000)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class LiveCohort(_Part):
    """A cohort that is being trained: the epochs, with their parts, and the time that are left of all its runs."""

    name: Name
    epochs_left: Positive | None = None
    seconds_left: Positive | None = None


class MachineLoad(_Part):
    """A machine of a cluster, and what it does."""

    name: Name
    cores: Positive = 0.0
    cores_used: Positive = 0.0
    gpus: Positive = 0.0
    jobs: Annotated[int, Field(ge=0)] = 0
    alive: bool = True


class LiveProgress(_Part):
    """The file's content. `started` is when the process began: a number is used again by another process."""

    process: int
    started: float
    host: Name
    folder: int  # inode: a copy of the folder is another one
    updated: Positive
    seconds_left: Positive | None = None
    rate: Positive | None = None  # steps per second over all runs that are being trained
    doing: Name = ""  # such as: timing, training
    cohorts: tuple[LiveCohort, ...] = ()
    machines: tuple[MachineLoad, ...] = ()

    @classmethod
    def here(cls, folder: Path) -> LiveProgress:
        """That of this process, which works in the folder."""
        process, started = _this_process()
        inode = folder.stat().st_ino
        return cls(process=process, started=started, host=socket.gethostname(), folder=inode, updated=time.time())

    def is_alive(self, folder: Path) -> bool:
        """Whether the process that wrote it is still at work in this very folder, as far as can be known."""
        if folder.stat().st_ino != self.folder:
            return False
        lately = time.time() - self.updated < SILENCE
        if self.host != socket.gethostname():
            return lately
        try:
            # the time of its beginning follows from the clock, which may be set while it works
            return abs(psutil.Process(self.process).create_time() - self.started) < CLOCK or lately
        except psutil.AccessDenied:
            return True  # a process of another user
        except psutil.Error:
            return False


@cache
def _this_process() -> tuple[int, float]:
    return os.getpid(), psutil.Process().create_time()


def write_live(folder: Path, progress: LiveProgress) -> None:
    """Replace the file. No fsync: it is of no use after a power cut."""
    part = files.inside(folder, f"{LIVE_FILE}.part")  # a link would lead elsewhere
    part.write_text(progress.model_dump_json(), "utf-8")
    part.replace(folder / LIVE_FILE)


def remove_live(folder: Path) -> None:
    """Remove the file at the end."""
    (folder / LIVE_FILE).unlink(missing_ok=True)


def read_live(folder: Path) -> LiveProgress | None:
    """What a run at work says; None where none is at work, or the file is none of ours."""
    try:
        path = files.inside(folder, LIVE_FILE)
        if not path.exists():
            return None
        found = LiveProgress.model_validate_json(files.read_text(path, MOST_BYTES))
        return found if found.is_alive(folder) else None
    except (TiebreakError, ValidationError, OSError, OverflowError):
        return None
