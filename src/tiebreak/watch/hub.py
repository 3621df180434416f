"""All studies that are watched: found, read one at a time by one task, and handed to every client alike."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.verdict.study_folders import is_results_folder
from tiebreak.watch.snapshot import SUMMARY
from tiebreak.watch.watched_folder import WatchedFolder

EVERY = 1.0  # seconds between two looks at the folders, at least
FIND_EVERY = 5.0  # seconds between two searches for new folders
INTEREST = 10.0  # seconds that a folder is kept up to date for after a single request
PATIENCE = 0.5  # seconds that a request waits for newer data than there is


@dataclass(frozen=True, kw_only=True)
class Published:
    """What clients get: JSON, and the same as an event. The version is a digest, so equal content is never sent."""

    body: bytes
    version: str

    @classmethod
    def of(cls, content: Any) -> Published:
        """The content, encoded once for all clients."""
        body = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
        return cls(body=body, version=blake2b(body, digest_size=8).hexdigest())

    @property
    def event(self) -> bytes:
        """A server-sent event. JSON has no line breaks."""
        return b"event: snapshot\nid: " + self.version.encode() + b"\ndata: " + self.body + b"\n\n"


class WatchedStudy:
    """A folder with what was last published of it, and who wants it."""

    def __init__(self, folder: Path) -> None:
        self.folder = WatchedFolder(folder)
        self.published: Published | None = None
        self.clients, self.asked, self.checked = 0, 0.0, -EVERY
        self._lock = asyncio.Lock()

    def summary(self) -> dict[str, Any]:
        """Its line in the list."""
        return {key: self.folder.snapshot[key] for key in SUMMARY}

    async def refresh(self) -> bool:
        """Read what is new, at most once a second however many ask. Whether something changed."""
        async with self._lock:
            if time.monotonic() - self.checked < EVERY and self.published is not None:
                return False
            changed = await asyncio.to_thread(self.folder.refresh)
            self.checked = time.monotonic()
            if changed or self.published is None:
                self.published = Published.of(self.folder.snapshot)
            return changed


class Hub:
    """The studies of some places: results folders, or folders of results folders."""

    def __init__(self, places: Sequence[Path], *, studies: Sequence[Path] = ()) -> None:
        """`studies` are results folders that may not exist yet."""
        self._places, self._given = list(places), list(studies)
        self.studies: dict[str, WatchedStudy] = {}  # by id
        self.closing = False
        self._news = asyncio.Event()
        self._list_clients, self._list_asked, self._searched = 0, 0.0, -FIND_EVERY
        self._list: Published | None = None
        self._work: asyncio.Task[None] | None = None
        self._reading: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def single(self) -> bool:
        """Whether the one study that there is, is all that was asked for: then the first page is its page."""
        alone = [*self._given, *(place for place in self._places if is_results_folder(place))]
        return len(alone) == len(self._given) + len(self._places) == len(self.studies) == 1

    @property
    def clients(self) -> int:
        """How many event streams there are."""
        return self._list_clients + sum(study.clients for study in self.studies.values())

    @property
    def is_running(self) -> bool:
        """Whether a study is being trained, as far as was read."""
        return any(study.folder.snapshot["state"] == "running" for study in self.studies.values())

    async def find(self) -> None:
        """Look for results folders that are new."""
        found = await asyncio.to_thread(lambda: [one for place in self._places for one in _inside(place)])
        before = len(self.studies)
        for folder in (*self._given, *found):
            watched = WatchedStudy(folder)
            self.studies.setdefault(watched.folder.id, watched)
        self._searched = time.monotonic()
        if len(self.studies) > before:
            self._announce()

    async def start(self) -> None:
        """Begin to read, in the running event loop."""
        self._loop = asyncio.get_running_loop()
        await self.find()
        self._work = asyncio.create_task(self._read())

    async def stop(self) -> None:
        """End all event streams and the reading."""
        self.end_streams()
        if self._work is not None:
            self._work.cancel()
            with suppress(asyncio.CancelledError):
                await self._work

    def end_streams(self) -> None:
        """Let every event stream come to its end."""
        self.closing = True
        self._announce()

    def end_streams_soon(self) -> None:
        """The same, from another thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.end_streams)

    async def _read(self) -> None:
        while True:
            if time.monotonic() - self._searched > FIND_EVERY:
                await self.find()
            await self._refresh_all([study for study in self.studies.values() if self._is_wanted(study)])
            await asyncio.sleep(EVERY)

    async def _refresh_all(self, studies: Sequence[WatchedStudy]) -> None:
        for study in studies:
            if await study.refresh():
                self._announce()

    def _is_wanted(self, study: WatchedStudy) -> bool:
        lately = time.monotonic() - INTEREST
        asked = max(study.asked, self._list_asked) > lately
        return study.published is None or asked or study.clients + self._list_clients > 0

    def _announce(self) -> None:
        old, self._news, self._list = self._news, asyncio.Event(), None
        old.set()

    async def newest(self, study: WatchedStudy) -> Published:
        """The study as it is now; the last known state where reading takes longer than a moment."""
        study.asked = time.monotonic()
        await self._refresh([study])
        while study.published is None:  # the first reading
            await study.refresh()
        return study.published

    async def newest_list(self) -> Published:
        """All studies, one line each, in the same way."""
        self._list_asked = time.monotonic()
        await self._refresh(list(self.studies.values()))
        if self._list is None:
            lines = [study.summary() for study in self.studies.values()]
            self._list = Published.of({"studies": lines, "single": self.single})
        return self._list

    async def _refresh(self, studies: Sequence[WatchedStudy]) -> None:
        """Read what is new of some studies; what takes longer than a moment goes on by itself."""
        reading = asyncio.create_task(self._refresh_all(studies))
        self._reading.add(reading)  # asyncio itself keeps no task
        reading.add_done_callback(self._reading.discard)
        await asyncio.wait([reading], timeout=PATIENCE)

    @contextmanager
    def watching(self, study: WatchedStudy | None) -> Iterator[None]:
        """Keep a study, or the whole list, up to date for a client."""
        if study is None:
            self._list_clients += 1
        else:
            study.clients += 1
        try:
            yield
        finally:
            if study is None:
                self._list_clients -= 1
            else:
                study.clients -= 1

    async def changed(self, seconds: float) -> bool:
        """Wait until something is new, at most so long. Whether something is."""
        try:
            await asyncio.wait_for(self._news.wait(), seconds)
        except TimeoutError:
            return False
        return True


def _inside(place: Path) -> list[Path]:
    """The results folders of a place: itself, or those directly in it. One that cannot be read has none."""
    try:
        if is_results_folder(place):
            return [place]
        return sorted(path for path in place.iterdir() if path.is_dir() and is_results_folder(path))
    except (OSError, TiebreakError):
        return []
