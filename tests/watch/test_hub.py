"""Many clients, one reader: folders are found, read once for all who ask, and left alone when nobody does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support import watched
from tiebreak.watch import hub as hub_module
from tiebreak.watch.hub import Hub, Published
from tiebreak.watch.watched_folder import WatchedFolder


def test_results_folders_are_found_below_a_folder_also_later(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "runs" / "one", ended=1)
    (tmp_path / "runs" / "something else").mkdir()
    (tmp_path / "runs" / "a file").write_text("")
    hub = Hub([tmp_path / "runs", tmp_path / "runs" / "one"])
    asyncio.run(hub.find())
    assert [study.folder.path.name for study in hub.studies.values()] == ["one"]
    watched.make_folder(tmp_path / "runs" / "two", ended=1)
    asyncio.run(hub.find())
    assert [study.folder.path.name for study in hub.studies.values()] == ["one", "two"]
    assert not hub.single


@pytest.mark.parametrize("given", [True, False])
def test_one_results_folder_is_a_single_study(tmp_path: Path, given: bool) -> None:
    watched.make_folder(tmp_path / "one", ended=1)
    hub = Hub([], studies=[tmp_path / "one"]) if given else Hub([tmp_path / "one"])
    asyncio.run(hub.find())
    assert hub.single


def test_a_folder_that_vanished_or_never_was_holds_nothing(tmp_path: Path) -> None:
    hub = Hub([tmp_path / "nothing"])
    asyncio.run(hub.find())
    assert not hub.studies


async def started(hub: Hub) -> Hub:
    await hub.start()
    return hub


def test_fifty_who_ask_at_once_cost_one_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings: list[Path] = []
    read = WatchedFolder.refresh

    def counted(folder: WatchedFolder) -> bool:
        readings.append(folder.path)
        return read(folder)

    monkeypatch.setattr(WatchedFolder, "refresh", counted)
    watched.make_folder(tmp_path / "one", ended=2)

    async def ask() -> list[Published]:
        hub = await started(Hub([tmp_path / "one"]))
        (study,) = hub.studies.values()
        found = await asyncio.gather(*(hub.newest(study) for _ in range(50)))
        await hub.stop()
        return found

    found = asyncio.run(ask())
    assert len({id(each) for each in found}) == 1  # encoded once, too
    assert len(readings) == 1


def test_a_folder_that_nobody_watches_is_read_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched.make_folder(tmp_path / "one", ended=2)
    hub = Hub([tmp_path / "one"])
    asyncio.run(hub.find())
    (study,) = hub.studies.values()
    assert hub._is_wanted(study)  # not read yet
    asyncio.run(study.refresh())
    monkeypatch.setattr(hub_module, "INTEREST", -1.0)
    assert not hub._is_wanted(study)
    for wanted in (study, None):
        with hub.watching(wanted):
            assert hub.clients == 1
            assert hub._is_wanted(study)
    assert not hub.clients


def test_equal_content_has_an_equal_version_and_no_line_break() -> None:
    one, two = Published.of({"name": "a\n\u2028b"}), Published.of({"name": "a\n\u2028b"})
    assert one.version == two.version != Published.of({"name": "c"}).version
    assert one.event.count(b"\n") == 4
    with pytest.raises(ValueError, match="JSON"):
        Published.of(float("nan"))
