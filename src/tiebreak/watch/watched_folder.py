"""One results folder as it is watched: read again when its files have changed, and seldom enough to disturb nobody."""

from __future__ import annotations

import hashlib
import re
import time
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE
from tiebreak.report.page.document import HTML_FILE
from tiebreak.results.connection import log_of
from tiebreak.results.folder import opened, read_plan
from tiebreak.results.gaps import without_gaps
from tiebreak.results.live_progress import LIVE_FILE, read_live
from tiebreak.results.manifest import STUDY_FILE, file_problems
from tiebreak.results.misfit import explain_misfit
from tiebreak.results.store import STORE_FILE
from tiebreak.system import collector_paused
from tiebreak.text import one_line, printable
from tiebreak.verdict.study_folders import is_results_folder
from tiebreak.watch.run_counts import cohort_runs
from tiebreak.watch.snapshot import Reading, snapshot_of, snapshot_without_records

FILES = (STORE_FILE, log_of(Path(STORE_FILE)).name, PLAN_FILE, STUDY_FILE, HTML_FILE, LIVE_FILE)
REST = 30  # the time between two readings is so many times the time that one takes
TRIES = 3  # a file that is just being replaced cannot be read: only the third failure is shown

Stamp = tuple[tuple[int, int, int] | None, ...]


class WatchedFolder:
    """The folder, and its snapshot as of the last reading."""

    def __init__(self, path: Path) -> None:
        self.path, self.id = path, study_id(path)
        self.snapshot = self._without_records("reading", None)
        self._stamp: Stamp | None = None
        self._next, self._failures = 0.0, 0

    def refresh(self) -> bool:
        """Read the folder if its files have changed. Whether the snapshot is another one now."""
        stamp, now = _stamp(self.path), time.monotonic()
        alive = self.snapshot["state"] == "running" and read_live(self.path) is None
        if (stamp == self._stamp and not alive) or now < self._next:
            return False
        before, start = self.snapshot, time.thread_time()
        try:
            with collector_paused():
                self.snapshot = self._read(stamp)
            self._failures, self._stamp = 0, stamp
        except (TiebreakError, OSError) as error:
            self._failures += 1
            if self._failures < TRIES and before["state"] != "reading":
                return False
            name, question = before["name"], before["question"]
            self.snapshot = self._without_records("unreadable", one_line(error), name, question)
            self._stamp = stamp
        self._next = time.monotonic() + REST * (time.thread_time() - start)
        return self.snapshot != before

    def _read(self, stamp: Stamp) -> dict[str, Any]:
        if not self.path.is_dir():
            if self._stamp is None:
                return self._without_records("empty", "not there yet")
            raise TiebreakError(f"{self.path}: no such folder any more")
        if not is_results_folder(self.path):
            return self._without_records("empty", "no study has begun here")
        with opened(self.path) as store:
            study, plan = read_plan(self.path, store, identities=False)
            records = without_gaps(store.records())
            report = HTML_FILE in store.files() and not file_problems(store, self.path, (HTML_FILE,))
        reading = Reading(
            study=study,
            plan=plan,
            groups=cohort_runs(plan),
            records=records,
            live=read_live(self.path),
            report=report,
        )
        updated = max((each[0] / 1e9 for each in stamp if each is not None), default=time.time())
        with explain_misfit(study.name):
            return snapshot_of(reading, self.id, printable(self.path), updated)

    def _without_records(self, state: Any, problem: str | None, name: str = "", question: str = "") -> dict[str, Any]:
        return snapshot_without_records(
            self.id, printable(self.path), state, problem, name or printable(self.path.name), question
        )


def study_id(path: Path) -> str:
    """The name of a folder in addresses: letters, digits and hyphens, the same for the same folder.

    >>> study_id(Path("/runs/Pooling (2)"))
    'pooling-2-c3e93f21'
    """
    words = re.sub(r"[^a-z0-9]+", "-", path.name.lower()).strip("-")[:40]
    return f"{words or 'study'}-{hashlib.sha256(str(path.absolute()).encode('utf-8', 'replace')).hexdigest()[:8]}"


def _stamp(folder: Path) -> Stamp:
    """Time, size and inode of each file that a snapshot is made from; None where there is none."""
    found: list[tuple[int, int, int] | None] = []
    for name in FILES:
        try:
            status = (folder / name).stat()
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError:
            found.append(None)
    return tuple(found)
