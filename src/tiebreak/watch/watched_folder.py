"""One results folder as it is watched: read again when its files have changed, and seldom enough to disturb nobody."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError, describe_error
from tiebreak.plan.runs import PLAN_FILE, Plan
from tiebreak.report.page.document import HTML_FILE
from tiebreak.results.connection import log_of
from tiebreak.results.folder import opened, read_plan
from tiebreak.results.gaps import without_gaps
from tiebreak.results.growing_records import GrowingRecords
from tiebreak.results.live_progress import LIVE_FILE, read_live
from tiebreak.results.manifest import STUDY_FILE, file_problems
from tiebreak.results.misfit import explain_misfit
from tiebreak.results.seal import SEAL_FILE
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.study.schema import Study
from tiebreak.system import collector_paused
from tiebreak.text import one_line, printable
from tiebreak.verdict.model import VERDICT_FILE, Verdict
from tiebreak.verdict.study_folders import is_results_folder
from tiebreak.watch.run_counts import Groups, cohort_runs
from tiebreak.watch.snapshot import Reading, snapshot_of, snapshot_without_records
from tiebreak.watch.verdict_so_far import SoFar, verdict_so_far

FILES = (STORE_FILE, log_of(Path(STORE_FILE)).name, PLAN_FILE, STUDY_FILE, HTML_FILE, SEAL_FILE, LIVE_FILE)
PLANNED = slice(2, 4)  # the places of plan and study in a stamp
REST, LONGEST_REST = 30, 20.0  # between two readings: so many times the time that one takes, and seconds at most
TRIES = 3  # a file that is just being replaced cannot be read: only the third failure is shown
RETRY = 10.0  # seconds between two readings of a folder that cannot be read: what was wrong may leave no trace in it
WAIT = 2.0  # seconds for another program that holds the store

Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, kw_only=True)
class _Planned:
    """The study as planned; it stays while its files do not change."""

    stamp: Stamp
    study: Study
    plan: Plan
    groups: Groups


class WatchedFolder:
    """The folder, and its snapshot as of the last reading. Of a study that nobody trains, only the snapshot is kept."""

    def __init__(self, path: Path) -> None:
        self.path, self.id = path, study_id(path)
        self.snapshot = self._without_records("reading", None)
        self._stamp: Stamp | None = None
        self._next, self._retry, self._failures = 0.0, 0.0, 0
        self._forget()

    def _forget(self) -> None:
        self._records = GrowingRecords()
        self._planned: _Planned | None = None
        self._so_far: SoFar | None = None

    def refresh(self) -> bool:
        """Read the folder if its files have changed. Whether the snapshot is another one now."""
        stamp, now = _stamp(self.path), time.monotonic()
        died = self.snapshot["state"] == "running" and read_live(self.path) is None
        again = self._failures > 0 and now >= self._retry
        if not died and ((stamp == self._stamp and not again) or now < self._next):
            return False
        before, start = self.snapshot, time.thread_time()
        try:
            with collector_paused():
                self.snapshot = self._read(stamp)
            self._failures, self._stamp = 0, stamp
        except Exception as error:  # a stranger's folder may hold anything; the other studies go on
            self._forget()
            self._failures += 1
            self._retry = time.monotonic() + RETRY
            if self._failures < TRIES and before["state"] != "reading":
                return False
            name, question = before["name"], before["question"]
            self.snapshot = self._without_records("unreadable", one_line(_problem(error)), name, question)
            self._stamp = stamp
        if before["state"] != "reading":  # the first takes long, once
            self._next = time.monotonic() + min(REST * (time.thread_time() - start), LONGEST_REST)
        return self.snapshot != before

    def _read(self, stamp: Stamp) -> dict[str, Any]:
        if not self.path.is_dir():
            if self._stamp is None:
                return self._without_records("empty", "not there yet")
            raise TiebreakError(f"{self.path}: no such folder any more")
        if not is_results_folder(self.path):
            return self._without_records("empty", "no study has begun here")
        live = read_live(self.path)
        if live is not None and not (self.path / PLAN_FILE).is_file():
            return self._without_records("empty", "a study is being planned here")
        with opened(self.path, WAIT) as store:
            planned = self._plan(store, stamp)
            records, ended = self._records.read(store)
            report = live is None and _is_recorded(store, self.path, HTML_FILE)
            stored = self._stored_verdict(store, planned.plan) if live is None else None
        records = without_gaps(records)
        with explain_misfit(planned.study.name):
            if ended or self._so_far is None:
                self._so_far = verdict_so_far(planned.study, planned.plan, records, stored)
            reading = Reading(
                study=planned.study,
                plan=planned.plan,
                groups=planned.groups,
                records=records,
                so_far=self._so_far,
                live=live,
                report=report,
            )
            updated = max((each[0] / 1e9 for each in stamp if each is not None), default=time.time())
            found = snapshot_of(reading, self.id, printable(self.path), updated)
        if live is None:
            self._forget()
        return found

    def _plan(self, store: Store, stamp: Stamp) -> _Planned:
        if self._planned is None or self._planned.stamp != stamp[PLANNED]:
            study, plan = read_plan(self.path, store, identities=False)
            self._planned = _Planned(stamp=stamp[PLANNED], study=study, plan=plan, groups=cohort_runs(plan))
            self._so_far = None
        return self._planned

    def _stored_verdict(self, store: Store, plan: Plan) -> Verdict | None:
        """The verdict that the last command left, where nothing was written since: the seal says so."""
        if not ((self.path / SEAL_FILE).is_file() and _is_recorded(store, self.path, VERDICT_FILE)):
            return None
        found = Verdict.read(self.path)
        return found if found.planned == len(plan.runs) and not found.is_of_earlier_version() else None

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


def _problem(error: Exception) -> str:
    return str(error) if isinstance(error, TiebreakError) else describe_error(error, None)


def _is_recorded(store: Store, folder: Path, name: str) -> bool:
    return name in store.files() and not file_problems(store, folder, (name,))


def _stamp(folder: Path) -> Stamp:
    """Time, size and inode of each file that a snapshot is made from; None where there is none."""
    found: list[tuple[int, int, int] | None] = []
    for name in FILES:
        try:
            status = (folder / name).lstat()
            found.append((status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError:
            found.append(None)
    return tuple(found)
