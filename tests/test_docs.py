"""The documents are true: what they show runs, what they name exists."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tiebreak.report import claim_text
from tiebreak.study.parsing import builtin_names
from tiebreak.verdict.docket import read_docket

ROOT = Path(__file__).parents[1]
STORED = ROOT / "benchmarks" / "results" / "pooling-quick.json"  # `tiebreak run pooling --quick`
FIGURE = re.compile(r"(?<![\w-])[+−-]?\d[\d,]*(?:\.\d+)?")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def test_the_worked_example_of_add_a_design_runs(tmp_path: Path) -> None:
    page = ROOT / "docs" / "add-a-design.md"
    (tmp_path / "my_nets.py").write_text(blocks(page, "python")[0], "utf-8")
    (tmp_path / "my-question.toml").write_text(blocks(page, "toml")[0], "utf-8")
    command = [sys.executable, "-m", "tiebreak", "run", "my-question.toml", "--quick", "--seeds", "1"]
    command += ["--epochs", "1", "--workers", "1", "--strategy", "loop", "--out", "out"]
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


def figures(text: str) -> list[str]:
    """Every number of the text as it is printed, with ASCII signs."""
    return [item.replace("−", "-").replace(",", "") for item in FIGURE.findall(text)]


def assert_printed(text: str, values: list[float]) -> None:
    """The numbers of the text are these, rounded to as many digits as each is printed with."""
    printed = figures(text)
    assert len(printed) == len(values), (text, values)
    for item, value in zip(printed, values, strict=True):
        digits = len(item.partition(".")[2])
        assert float(item) == float(f"{value:.{digits}f}"), (text, value)


def stored_verdict() -> dict[str, Any]:
    return dict(json.loads(STORED.read_text("utf-8")))


def comparison(verdict: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (item for item in verdict["comparisons"] if item["name"] == name)
    return dict(found)


def test_the_readme_shows_the_figures_of_the_stored_verdict() -> None:
    verdict = stored_verdict()
    (block,) = (text for text in blocks(ROOT / "README.md", "text") if verdict["question"] in text)
    question, answer, table, _ = block.split("\n\n", 3)
    assert question == verdict["question"]
    assert figures(answer) == figures(verdict["answer"])
    rows = [line for line in table.splitlines()[1:] if not line.startswith(("...", "robustness", " "))]
    assert [row.split()[0] for row in rows] == [arm["name"] for arm in verdict["designs"]]
    for row, arm in zip(rows, verdict["designs"], strict=True):
        total = arm["seeds"] + arm["failed"] + arm["missing"]
        values = [arm["setting"]["lr"], arm["mean"], arm["low"], arm["high"]]
        values += [arm["seeds"], total, arm["parameters"], arm["train_seconds"]]
        assert ("none" in row.split()) == (arm["failed"] == 0)
        shown = row.removeprefix(arm["name"]).replace("lr=", " ")
        assert_printed(shown, values)
    robustness = comparison(verdict, "robustness")
    lines = table.splitlines()
    place = next(index for index, line in enumerate(lines) if line.startswith("robustness"))
    interval = [robustness["difference"], 95, robustness["seeds"], robustness["low"], robustness["high"]]
    assert_printed(lines[place + 1], interval)


def test_the_page_of_pooling_shows_the_figures_of_the_stored_verdict() -> None:
    verdict = stored_verdict()
    page = (ROOT / "docs" / "studies" / "pooling.md").read_text("utf-8")
    quick, _, full = page.partition("## Result so far")[2].partition("**Full size")
    rows = re.findall(r"^\| (.+) \| ([+−]\d.+) \| (.+) \|$", quick, re.M)
    assert len(rows) == len(verdict["comparisons"])
    for (label, shown, outcome), item in zip(rows, verdict["comparisons"], strict=True):
        values = [item["difference"], item["low"], item["high"]]
        assert_printed(shown.replace("95 % over seeds: ", ""), values)
        assert ("undecided" in outcome) == (item["verdict"] == "undecided"), label
        if item["seeds_needed"]:
            assert_printed(outcome, [item["seeds_needed"]])
    kept = [figure for each in read_docket() if each.data == "pneumoniamnist" for figure in each.figures]
    rows = re.findall(r"^\| (.+) \| ([+−]\d.+) \| ([+−]\d.+) \|$", full, re.M)
    assert len(rows) == len(kept) == 5
    for label, _, shown in rows:  # which the docket has with all looks
        (figure,) = [each for each in kept if shown.startswith(claim_text.figure(each).removeprefix(f"{each.what} "))]
        assert ("undecided" in shown) == (figure.verdict == "undecided"), label


def test_the_stored_verdict_is_one_of_the_quick_study() -> None:
    from tiebreak.study.schema import Study

    verdict, study = stored_verdict(), Study.load("pooling").quickened()
    assert (verdict["study"], verdict["data"], verdict["protocol"]) == (study.name, study.data, study.protocol)
    assert verdict["question"] == study.question
    assert [arm["name"] for arm in verdict["designs"]] == [arm.name for arm in study.arms]
    assert {arm["seeds"] for arm in verdict["designs"]} == {study.seeds}
    assert STORED.name in (STORED.parent / "README.md").read_text("utf-8")
