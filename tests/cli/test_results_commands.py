"""What can be asked of results: `verdict`, `report`, `status`, `check`; `use` is in test_use.py."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.cli_fixtures import Finished, Tiebreak, one_line


@pytest.mark.parametrize("command", ["verdict", "report", "open", "status", "check"])
def test_a_folder_without_results_is_one_line(command: str, tiebreak: Tiebreak, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "gone"):
        done = tiebreak(command, place)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"tiebreak: {place}: ")
        assert done.err.count("\n") == 1


def test_a_verdict_is_shown_in_words(finished: Finished, tiebreak: Tiebreak) -> None:
    done = tiebreak("verdict", finished.folder)
    assert (done.code, done.err) == (0, "")
    assert "Undecided between pool and strided" in one_line(done.out)
    assert "report.html" in done.out


def test_a_verdict_for_programs_is_the_stored_file(finished: Finished, tiebreak: Tiebreak) -> None:
    done = tiebreak("verdict", finished.folder, "--json")
    assert done.code == 0
    assert json.loads(done.out) == json.loads((finished.folder / "verdict.json").read_text())
    assert json.loads(done.out)["study"] == "tiny"


def test_the_status_counts_runs_by_arm_and_setting(finished: Finished, tiebreak: Tiebreak) -> None:
    done = tiebreak("status", finished.folder)
    assert (done.code, done.err) == (0, "")
    assert "pool default 2 of 2 - - - 2 of 2" in one_line(done.out)
    assert "4 of 4 runs done" in done.out
    assert re.search(r"cnn-strided: (fused|one after the other)", one_line(done.out))


def test_a_report_is_written_anew(folder: Path, tiebreak: Tiebreak) -> None:
    for name in ("report.html", "report.md", "verdict.json"):
        (folder / name).unlink()
    done = tiebreak("report", folder)
    assert (done.code, done.out) == (0, f"{folder / 'report.html'}\n")
    assert "Undecided between pool and strided" in (folder / "report.md").read_text()
    assert (folder / "verdict.json").is_file()


def test_without_a_browser_the_path_of_the_report_is_printed(
    finished: Finished, tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    done = tiebreak("open", finished.folder)
    assert (done.code, done.out) == (0, f"{finished.folder.resolve() / 'report.html'}\n")


def test_a_whole_folder_passes_the_check(finished: Finished, tiebreak: Tiebreak) -> None:
    done = tiebreak("check", finished.folder)
    assert (done.code, done.err) == (0, "")
    compared = re.search(r"(\d+) digests", done.out)
    assert compared is not None
    assert int(compared[1]) >= 20  # 4 identities; 4 epochs, 4 runs, 4 evaluations; 4 checkpoints
    for name in (
        "study.toml",
        "plan.json",
        "verdict.json",
        "report.html",
        "report.md",
        "records.sqlite",
        "checkpoints",
    ):
        assert name in done.out


def test_a_damaged_checkpoint_fails_the_check(folder: Path, tiebreak: Tiebreak) -> None:
    path = min((folder / "checkpoints").iterdir())
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    done = tiebreak("check", folder)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"tiebreak: {path}: damaged")


def test_a_missing_checkpoint_fails_the_check(folder: Path, tiebreak: Tiebreak) -> None:
    path = min((folder / "checkpoints").iterdir())
    path.unlink()
    done = tiebreak("check", folder)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"tiebreak: {path}: missing")


def test_a_changed_plan_fails_the_check_and_is_not_believed(folder: Path, tiebreak: Tiebreak) -> None:
    path = folder / "plan.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 9', 1))
    for command in ("check", "verdict", "status", "report"):
        done = tiebreak(command, folder)
        assert done.code == 2
        assert f"{path}: damaged or edited" in done.err


def test_a_store_that_is_no_database_is_one_line(folder: Path, tiebreak: Tiebreak) -> None:
    for path in folder.glob("records.sqlite*"):
        path.write_bytes(b"not a database at all" * 100)
    for command in ("check", "verdict", "status", "report"):
        done = tiebreak(command, folder)
        assert done.code == 2
        assert "records.sqlite" in done.err
        assert done.err.count("\n") == 1
