"""Folders in every condition: growing, damaged, locked, vanishing, read-only, a stranger's. Each is one state."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support import hand_made, watched
from tiebreak.results import live_progress
from tiebreak.results.live_progress import LiveProgress, write_live
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.watch import watched_folder
from tiebreak.watch.watched_folder import TRIES, WatchedFolder, study_id


@pytest.fixture(autouse=True)
def without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_folder, "REST", 0)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_watched_stays_as_it_is_byte_for_byte(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "out", ended=3)
    before = contents(tmp_path / "out")
    study = WatchedFolder(tmp_path / "out")
    assert study.refresh()
    assert (study.snapshot["state"], study.snapshot["final"]) == ("ended", True)
    assert contents(tmp_path / "out") == before  # no look either: the store is the same


def test_a_folder_is_read_again_only_when_a_file_has_changed(tmp_path: Path) -> None:
    plan = watched.make_folder(tmp_path / "out", ended=1)
    study = WatchedFolder(tmp_path / "out")
    assert study.refresh()
    assert not study.refresh()
    watched.end_runs(tmp_path / "out", [run for run in plan.runs.values() if run.seed == 1])
    assert study.refresh()
    assert study.snapshot["progress"]["runs_done"] == 8


def test_a_running_study_is_read_row_by_row(tmp_path: Path) -> None:
    """While a writer has its store open, with the numbers of a fresh reading; at the end it is no longer running."""
    plan = watched.make_folder(tmp_path / "out")
    write_live(tmp_path / "out", LiveProgress.here(tmp_path / "out").model_copy(update={"seconds_left": 60.0}))
    study = WatchedFolder(tmp_path / "out")
    with closing(Store.create(tmp_path / "out")) as store:
        for run in plan.runs.values():
            with store.transaction():
                watched.add_run(store, run, "diverged" if run.seed == 2 and run.design == "cnn-pool" else "done")
            assert study.refresh()
            fresh = WatchedFolder(tmp_path / "out")
            fresh.refresh()
            assert study.snapshot == fresh.snapshot
    assert (study.snapshot["state"], study.snapshot["progress"]["seconds_left"]) == ("running", 60.0)
    live_progress.remove_live(tmp_path / "out")
    assert study.refresh()
    assert study.snapshot["state"] == "ended"


def test_a_run_that_was_killed_is_interrupted(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "out", ended=1)
    study = WatchedFolder(tmp_path / "out")
    write_live(tmp_path / "out", LiveProgress.here(tmp_path / "out").model_copy(update={"process": 2**22 + 1}))
    study.refresh()
    assert study.snapshot["state"] == "interrupted"


def test_a_folder_that_is_not_there_yet_is_empty_until_a_study_begins(tmp_path: Path) -> None:
    study = WatchedFolder(tmp_path / "out")
    study.refresh()
    assert study.snapshot["state"] == "empty"
    (tmp_path / "out").mkdir()
    study.refresh()
    assert study.snapshot["state"] == "empty"
    watched.make_folder(tmp_path / "out", ended=1)
    assert study.refresh()
    assert study.snapshot["state"] == "interrupted"


def vanish(folder: Path) -> None:
    shutil.rmtree(folder)


def cut(folder: Path) -> None:
    path = folder / STORE_FILE
    path.write_bytes(path.read_bytes()[:5_000])


def overwrite_store(folder: Path) -> None:
    (folder / STORE_FILE).write_bytes(b"not a store" * 1_000)


def overwrite_plan(folder: Path) -> None:
    (folder / "plan.json").write_text("{")


def lead_elsewhere(folder: Path) -> None:
    (folder / STORE_FILE).rename(folder.parent / "elsewhere")
    (folder / STORE_FILE).symlink_to(folder.parent / "elsewhere")


def another_study(folder: Path) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**plan, "arms": plan["arms"][:1]}))


@pytest.mark.parametrize("harm", [vanish, cut, overwrite_store, overwrite_plan, lead_elsewhere, another_study])
def test_what_cannot_be_read_is_a_state_with_one_line_and_comes_back(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    folder = tmp_path / "out"
    watched.make_folder(folder, ended=3)
    shutil.copytree(folder, tmp_path / "kept")
    study = WatchedFolder(folder)
    study.refresh()
    before = study.snapshot
    harm(folder)
    for _ in range(TRIES):
        assert study.snapshot == before  # it may be replaced just now: not at once
        study.refresh()
    assert (study.snapshot["state"], study.snapshot["name"]) == ("unreadable", before["name"])
    assert str(folder) in study.snapshot["problem"]
    assert "\n" not in study.snapshot["problem"]
    assert study.snapshot["comparisons"] == []
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(tmp_path / "kept", folder)
    assert study.refresh()
    assert study.snapshot["state"] == "ended"


def test_a_store_is_told_to_be_held_until_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_folder, "WAIT", 0.01)
    watched.make_folder(tmp_path / "out", ended=1)
    with closing(sqlite3.connect(tmp_path / "out" / STORE_FILE, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=DELETE")
        other.execute("BEGIN EXCLUSIVE")
        study = WatchedFolder(tmp_path / "out")
        study.refresh()
    assert study.snapshot["state"] == "unreadable"
    assert "another program holds it" in study.snapshot["problem"]
    assert not study.refresh()  # not every second
    monkeypatch.setattr("time.monotonic", lambda: 1e12)
    assert study.refresh()  # no file has changed
    assert study.snapshot["state"] == "interrupted"


def test_a_folder_that_cannot_be_written_is_watched_all_the_same(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "out", ended=3)
    for path in (tmp_path / "out", *(tmp_path / "out").iterdir()):
        path.chmod(0o555 if path.is_dir() else 0o444)
    study = WatchedFolder(tmp_path / "out")
    study.refresh()
    (tmp_path / "out").chmod(0o755)
    assert study.snapshot["state"] == "ended"


def test_damaged_records_are_left_out_and_named(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "out", ended=3)
    with closing(sqlite3.connect(tmp_path / "out" / STORE_FILE)) as other, other:
        other.execute("UPDATE runs SET content = replace(content, 'done', 'dome') WHERE rowid = 1")
    study = WatchedFolder(tmp_path / "out")
    study.refresh()
    assert study.snapshot["progress"]["runs_done"] == 11
    assert any("damaged" in line for line in study.snapshot["warnings"])


def test_hostile_names_are_data(tmp_path: Path) -> None:
    script = "<script>alert(1)</script>"
    watched.make_folder(tmp_path / script, ended=1, question=f'{script}"\u2028\x1b[31m', comparisons=[
        {"name": script, "a": "pool", "b": "strided"}
    ])  # fmt: skip
    study = WatchedFolder(tmp_path / script)
    study.refresh()
    assert script in study.snapshot["question"]
    assert study.snapshot["comparisons"][0]["label"] == script
    assert "\x1b" not in json.dumps(study.snapshot, ensure_ascii=False)
    assert study.id == study_id(tmp_path / script)
    assert study.id.replace("-", "").isalnum()


def test_the_seed_of_a_plan_that_grows_is_followed(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "out", ended=3)
    write_live(tmp_path / "out", LiveProgress.here(tmp_path / "out"))
    study = WatchedFolder(tmp_path / "out")
    study.refresh()
    watched.grow(tmp_path / "out", hand_made.study(seeds=5))
    study.refresh()
    assert (study.snapshot["progress"]["runs_done"], study.snapshot["progress"]["runs"]) == (12, 20)


def test_readings_take_a_small_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_folder, "REST", 1e9)
    monkeypatch.setattr(watched_folder, "LONGEST_REST", 1e9)
    watched.make_folder(tmp_path / "out", ended=1)
    write_live(tmp_path / "out", LiveProgress.here(tmp_path / "out"))
    study = WatchedFolder(tmp_path / "out")
    for expected in (True, True, False):  # the first does not count
        assert study.refresh() == expected
        watched.add_epochs(tmp_path / "out", 1)
    live_progress.remove_live(tmp_path / "out")
    assert study.refresh()  # the end is shown at once
    assert study.snapshot["state"] == "interrupted"
