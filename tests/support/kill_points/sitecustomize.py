"""Kills the process at a named point: before or after the n-th fsync, rename or commit.

Python imports this module at its start where this folder is in PYTHONPATH, in the driver and in its workers; the
product itself has no hook. KILL_LOG names a file that gets a line for every point passed (`driver commit before 3`);
KILL_AT is such a line, at which the process kills itself. A worker is killed once: KILL_LOG then holds `killed`.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections import Counter
from typing import Any

LOG, AT = os.environ.get("KILL_LOG"), os.environ.get("KILL_AT")
ROLE = "worker" if any("tiebreak.drive.worker" in each for each in sys.orig_argv) else "driver"
_counts: Counter[str] = Counter()


def _append(line: str) -> None:
    if LOG:
        handle = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(handle, f"{line}\n".encode())
        os.close(handle)


def _killed_before() -> bool:
    if not LOG or not os.path.exists(LOG):  # noqa: PTH110 - a small start: no pathlib
        return False
    with open(LOG, encoding="utf-8") as file:  # noqa: PTH123
        return "killed\n" in file


def _pass(kind: str, when: str) -> None:
    _counts[f"{kind} {when}"] += 1
    line = f"{ROLE} {kind} {when} {_counts[f'{kind} {when}']}"
    if AT is None:
        _append(line)
    elif line == AT and not _killed_before():
        _append("killed")
        os.kill(os.getpid(), signal.SIGKILL)


def _around(kind: str, function: Any) -> Any:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        _pass(kind, "before")
        result = function(*arguments, **named)
        _pass(kind, "after")
        return result

    return wrapped


def _counted(factory: type[sqlite3.Connection]) -> type[sqlite3.Connection]:
    """The class of connections with its commits as points."""

    class Counted(factory):  # type: ignore[misc, valid-type]
        def execute(self, *arguments: Any) -> Any:
            if not str(arguments[0]).startswith("COMMIT"):
                return super().execute(*arguments)
            return _around("commit", super().execute)(*arguments)

    return Counted


def _connect_counted(*arguments: Any, factory: type[sqlite3.Connection] = sqlite3.Connection, **named: Any) -> Any:
    return _connect(*arguments, factory=_counted(factory), **named)


if LOG or AT:
    _connect = sqlite3.connect
    sqlite3.connect = _connect_counted
    os.fsync = _around("fsync", os.fsync)
    os.replace = _around("rename", os.replace)
