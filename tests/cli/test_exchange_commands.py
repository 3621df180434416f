"""`tiebreak export` and `tiebreak log`, on the folder of a study and on one of `tiebreak compare`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli_fixtures import Finished, Tiebreak


def test_a_study_is_exported_beside_its_results(folder: Path, tiebreak: Tiebreak) -> None:
    done = tiebreak("export", folder, "--to", "csv")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        str(folder / "export" / f"{name}.csv") for name in ("scores", "arms", "comparisons")
    ]
    assert (folder / "export" / "scores.csv").read_text().startswith("arm,setting,seed,metric,score\npool,")
    assert tiebreak("check", folder).code == 0


@pytest.mark.parametrize("link", ["export", "export/figures", "log-tensorboard"])
def test_a_link_in_a_strangers_folder_leads_nowhere(
    link: str, folder: Path, tiebreak: Tiebreak, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (folder / link).parent.mkdir(exist_ok=True)
    (folder / link).symlink_to(home)
    done = tiebreak("log" if "log" in link else "export", folder, "--to", "tensorboard" if "log" in link else "csv")
    assert done.code == 2
    assert "symbolic link" in done.err
    assert list(home.iterdir()) == []


def test_a_compared_table_is_exported_too(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("arm,seed,score\n" + "".join(f"{arm},{seed},0.{seed + 1}\n" for arm in "ab" for seed in range(7)))
    done = tiebreak("compare", path, "--out", tmp_path / "out")
    assert done.out.splitlines()[-1] == str(tmp_path / "out" / "report.html")
    done = tiebreak("export", tmp_path / "out", "--to", "markdown", "--out", tmp_path / "paper")
    assert (done.code, done.out) == (0, f"{tmp_path / 'paper' / 'results.md'}\n")


@pytest.mark.parametrize("command", [("export", "--to", "json"), ("log", "--to", "tensorboard")])
def test_a_folder_without_results_is_one_line(command: tuple[str, ...], tiebreak: Tiebreak, tmp_path: Path) -> None:
    name, *options = command
    done = tiebreak(name, tmp_path, *options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"tiebreak: {tmp_path}: ")
    assert list(tmp_path.iterdir()) == []


def test_a_tracker_that_is_not_installed_says_what_to_install(
    finished: Finished, tiebreak: Tiebreak, tmp_path: Path
) -> None:
    try:
        import wandb  # type: ignore[import-not-found]  # noqa: F401
    except ImportError:
        done = tiebreak("log", finished.folder, "--to", "wandb-offline", "--out", tmp_path / "log")
        assert done.code == 2
        assert "tiebreak[wandb]" in done.err
        assert not (tmp_path / "log").exists()
