"""Server-sent events: the newest snapshot when it changed, at most once a second, and a sign of life in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from tiebreak.watch.hub import EVERY, Hub, WatchedStudy

HEART_BEAT = 15.0  # seconds


async def events(hub: Hub, study: WatchedStudy | None, last: str) -> AsyncGenerator[bytes, None]:
    """The events of a study, or of the list, for a client whose last version is `last`.

    A client that slept gets the newest at once, and nothing that lies between.
    """
    with hub.watching(study):
        while not hub.closing:
            newest = await (hub.newest(study) if study is not None else hub.newest_list())
            if newest.version != last:
                last = newest.version
                yield newest.event
                await asyncio.sleep(EVERY)
            elif not await hub.changed(HEART_BEAT):
                yield b": still here\n\n"
