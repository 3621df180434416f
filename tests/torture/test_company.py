"""Readers beside a writer, and two writers: nobody waits for a reader, everybody sees a whole folder."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.torture import KILLS, PATIENCE_SECONDS, QUICK, case
from support.torture_log import count, skip_when_late
from tiebreak.results.check import check
from tiebreak.results.seal import SEAL_FILE
from tiebreak.watch import watched_folder
from tiebreak.watch.watched_folder import WatchedFolder

pytestmark = [pytest.mark.torture, pytest.mark.slow]  # fast: results/test_store.py and results/test_lock.py
READERS = ("status", "verdict", "check", "report", "status", "check") if KILLS else ("status", "check")
TIMES = 5 if KILLS else 1


def read_until(done: threading.Event, command: str, folder: Path, out: Path, seen: list[tuple[int, str]]) -> None:
    """Run a reader again and again, and once more after the writer has ended."""
    elsewhere = ("--out", str(out)) if command == "report" else ()
    while True:
        last = done.is_set()
        found = subprocess.run(
            [sys.executable, "-m", "tiebreak", command, str(folder), *elsewhere],
            capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        seen.append((found.returncode, found.stdout + found.stderr))
        if last:
            return


@pytest.mark.parametrize("number", range(TIMES))
def test_readers_beside_a_writer_see_a_whole_folder(
    number: int, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    skip_when_late()
    tried = case(*QUICK, tmp_path_factory)
    command, done = tried.command(tmp_path / "out"), threading.Event()
    writer = command.start()
    seen: dict[int, list[tuple[int, str]]] = {place: [] for place in range(len(READERS))}
    threads = [
        threading.Thread(target=read_until, args=(done, name, command.folder, tmp_path / f"report{place}", seen[place]))
        for place, name in enumerate(READERS)
    ]
    for thread in threads:
        thread.start()
    output, _ = writer.communicate(timeout=PATIENCE_SECONDS)
    done.set()
    for thread in threads:
        thread.join()
    assert writer.returncode == 0, output
    for answers in seen.values():
        assert all("Traceback" not in text for _, text in answers), answers
        early = ("is this the --out folder", "no such folder")
        began = [code for code, text in answers if not any(hint in text for hint in early)]
        assert set(began) == {0}, answers
        count("reads beside a writer", len(began))
    tried.assert_equal(command.folder)


@pytest.mark.parametrize("number", range(TIMES))
def test_watching_without_a_pause_disturbs_nothing(
    number: int, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_when_late()
    monkeypatch.setattr(watched_folder, "REST", 0)
    tried = case(*QUICK, tmp_path_factory)
    command = tried.command(tmp_path / "out")
    writer, study, states = command.start(), WatchedFolder(command.folder), list[str]()
    while not states or writer.poll() is None:
        if study.refresh():
            count("readings of the page")
        states.append(study.snapshot["state"])
    study.refresh()
    output, _ = writer.communicate(timeout=PATIENCE_SECONDS)
    assert writer.returncode == 0, output
    assert set(states) <= {"reading", "empty", "running", "ended"}, study.snapshot["problem"]
    assert (study.snapshot["state"], study.snapshot["final"]) == ("ended", True)
    assert (command.folder / SEAL_FILE).is_file()
    tried.assert_equal(command.folder)


@pytest.mark.parametrize("number", range(TIMES))
def test_two_writers_take_turns(number: int, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    skip_when_late()
    tried = case(*QUICK, tmp_path_factory)
    commands = [tried.command(tmp_path / "out") for _ in range(2)]
    processes = [command.start() for command in commands]
    outputs = [process.communicate(timeout=PATIENCE_SECONDS)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert check(tmp_path / "out").problems == []
    tried.assert_equal(tmp_path / "out")
    count("pairs of writers")
