"""Server-sent events: the newest at once, again when it changed, a sign of life in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support import watched
from support.web_client import LOCAL, serving
from tiebreak.watch import event_stream, hub, watched_folder
from tiebreak.watch.access import Access
from tiebreak.watch.event_stream import events
from tiebreak.watch.hub import Hub
from tiebreak.watch.web_app import web_app


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (hub, event_stream):
        monkeypatch.setattr(module, "EVERY", 0.01)
    monkeypatch.setattr(watched_folder, "REST", 0)


def content(event: bytes) -> tuple[str, dict[str, Any]]:
    """The version and the snapshot of an event."""
    name, version, data, *end = event.decode().split("\n")
    assert (name, end) == ("event: snapshot", ["", ""])
    return version.removeprefix("id: "), json.loads(data.removeprefix("data: "))


async def following(stream: AsyncIterator[bytes]) -> bytes:
    """The next event that is not a sign of life."""
    async for event in stream:
        if not event.startswith(b":"):
            return event
    raise AssertionError("the stream ended")


@pytest.mark.parametrize("listed", [False, True])
def test_a_client_gets_the_newest_and_then_every_change(tmp_path: Path, listed: bool) -> None:
    plan = watched.make_folder(tmp_path / "one", ended=1)

    async def follow() -> list[tuple[str, dict[str, Any]]]:
        watching = Hub([tmp_path / "one"])
        await watching.start()
        stream = events(watching, None if listed else next(iter(watching.studies.values())), "")
        found = [content(await following(stream))]
        while listed and found[-1][1]["studies"][0]["state"] == "reading":
            found = [content(await following(stream))]
        watched.end_runs(tmp_path / "one", [run for run in plan.runs.values() if run.seed == 1])
        found.append(content(await following(stream)))
        watching.end_streams()
        assert [event async for event in stream if not event.startswith(b":")] == []
        await watching.stop()
        return found

    (before, first), (after, second) = asyncio.run(follow())
    assert before != after
    shown = [each["studies"][0] if listed else each for each in (first, second)]
    assert [each["progress"]["runs_done"] for each in shown] == [4, 8]


def test_a_client_that_slept_gets_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "HEART_BEAT", 0.01)
    watched.make_folder(tmp_path / "one", ended=1)
    with serving(web_app(Hub([tmp_path / "one"]), Access())) as client:
        address = f"/api/study/{client.get('/api/studies').json['studies'][0]['id']}/events"
        first = client.get(address, parts=1)
        assert first.headers["content-type"].startswith("text/event-stream")
        version, _ = content(first.body)
        again = client.get(address, {**LOCAL, "last-event-id": version}, parts=1)
        assert again.body.startswith(b":")
        other = client.get(address, {**LOCAL, "last-event-id": "of another server"}, parts=1)
        assert content(other.body)[0] == version


def test_clients_that_went_away_are_forgotten(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "one", ended=1)
    watching = Hub([tmp_path / "one"])
    with serving(web_app(watching, Access())) as client:
        client.get("/api/events", parts=1)
        assert not watching.clients
