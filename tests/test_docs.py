"""The documents are true: what they show runs, what they name exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tiebreak.study.parsing import builtin_names

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def test_the_worked_example_of_add_a_design_runs(tmp_path: Path) -> None:
    page = ROOT / "docs" / "add-a-design.md"
    (tmp_path / "my_nets.py").write_text(blocks(page, "python")[0], "utf-8")
    (tmp_path / "my-question.toml").write_text(blocks(page, "toml")[0], "utf-8")
    command = [sys.executable, "-m", "tiebreak", "run", "my-question.toml", "--quick", "--seeds", "2", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "residual" in done.stdout
    assert "code" in done.stdout, "the user is told that the file is code"
    assert (tmp_path / "out" / "report.html").is_file()


def test_every_study_has_a_page() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "studies").glob("*.md")}
    assert pages == set(builtin_names())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path) -> None:
    from tiebreak.cli.app import app

    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    known |= {group.name for group in app.registered_groups if group.name}
    for command in re.findall(r"`tiebreak ([a-z]+)|^tiebreak ([a-z]+)", page.read_text("utf-8"), re.M):
        assert "".join(command) in known, command
