"""`tiebreak claims`: your results among kept ones, damage is named, the page is written, quick studies are run."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.cli_fixtures import Tiebreak, one_line
from support.damage import graph_study, run_here
from support.small_study import loop_machine
from tiebreak import api
from tiebreak.drive.messages import Message, RunEnded
from tiebreak.results.store import Store
from tiebreak.study.schema import Study
from tiebreak.theory import identities
from tiebreak.theory.claims import Outcome

DECIDED = Outcome("any", "holds", "it does")
CLAIM = {
    "id": "pool-beats-stride",
    "text": "pooling beats stride 2",
    "comparison": "pool vs strided",
}  # not decided yet


@pytest.fixture(autouse=True)
def _no_identities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(identities, "CHECKS", {name: lambda: DECIDED for name in identities.CHECKS})


def rows(tiebreak: Tiebreak, *options: str) -> dict[str, dict[str, Any]]:
    done = tiebreak("claims", "--json", *options)
    assert done.code == 0
    return {row["id"]: row for row in json.loads(done.out)}


def mine(folder: Path, name: str = "pooling") -> Study:
    compared = {"name": "pool vs strided", "a": "gcn", "b": "mlp"}  # as in the built-in study, but with other arms
    return graph_study(folder / "mine.py", name=name, claims=[CLAIM], comparisons=[compared])


@pytest.mark.usefixtures("here")
def test_claims_that_a_finished_study_speaks_of_are_taken_from_it(tiebreak: Tiebreak, tmp_path: Path) -> None:
    run_here(mine(tmp_path), tmp_path / "runs" / "any name")
    found = rows(tiebreak)["pool-beats-stride"]
    assert found["verdict"] == "hint"  # of MNIST, which is closer to the claim
    (own,) = [each for each in found["results"] if each["file"] == "runs/any name/verdict.json"]
    assert (own["data"], own["n"], own["outcome"]) == ("karate", 1, "undecided")
    assert own["command"] == "tiebreak run 'runs/any name/study.toml' --out 'runs/any name'"
    assert own["device"]
    assert rows(tiebreak, "--from", "runs") == rows(tiebreak, "runs") == rows(tiebreak)
    shown = one_line(tiebreak("claims").out)
    assert "n = 1, your runs/any name/verdict.json: hint: undecided" in shown
    path = tmp_path / "runs" / "any name" / "verdict.json"
    path.write_text(path.read_text().replace("karate", "another"))
    done = tiebreak("claims", "--json")
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert "any name/verdict.json" in done.err
    assert "tiebreak report 'runs/any name'" in done.err
    assert all(each["file"] != "runs/any name/verdict.json" for row in json.loads(done.out) for each in row["results"])
    path.unlink()
    done = tiebreak("claims", "--json")
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert "verdict.json: missing; `tiebreak report 'runs/any name'`" in done.err


@pytest.mark.usefixtures("here")
def test_a_study_that_has_not_ended_is_left_out_though_it_has_a_report(tiebreak: Tiebreak, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "half"
    run_here(mine(tmp_path), folder)
    with closing(Store.create(folder)) as store, store.transaction():
        store.drop_run(next(iter(store.records().runs)))
    assert "Not final" in tiebreak("report", "runs/half").out + tiebreak("verdict", "runs/half").out
    done = tiebreak("claims", "--json", "--from", "runs")
    assert (done.code, done.err.count("runs/half: 1 of 2 runs have ended")) == (0, 1)
    assert all(each["file"] != "runs/half/verdict.json" for row in json.loads(done.out) for each in row["results"])


@pytest.mark.usefixtures("here")
def test_a_claim_that_is_none_of_the_reports_is_named(tiebreak: Tiebreak, tmp_path: Path) -> None:
    own = {**CLAIM, "id": "pool-beats-strides"}
    compared = {"name": "pool vs strided", "a": "gcn", "b": "mlp"}
    study = graph_study(tmp_path / "mine.py", name="pooling", claims=[own], comparisons=[compared])
    run_here(study, tmp_path / "runs" / "own")
    done = tiebreak("claims", "--json", "--from", "runs")
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert "runs/own: no claim 'pool-beats-strides'; did you mean 'pool-beats-stride'?" in done.err


@pytest.mark.usefixtures("here")
def test_a_study_that_is_not_finished_is_named(tiebreak: Tiebreak, tmp_path: Path) -> None:
    def interrupt(message: Message) -> None:
        if isinstance(message, RunEnded):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.run(mine(tmp_path), tmp_path / "runs" / "mine", machine=loop_machine(), listen=interrupt)
    done = tiebreak("claims", "--json", "--from", "runs")
    first, _ = done.err.splitlines()  # the other: no finished study
    assert first.endswith("runs/mine: 1 of 2 runs have ended; see `tiebreak status runs/mine`")


@pytest.mark.usefixtures("here")
def test_a_study_that_says_what_an_identity_means_for_quality_is_taken_too(tiebreak: Tiebreak, tmp_path: Path) -> None:
    (primary,) = (item.name for item in Study.load("graph-normalisation").comparisons if item.primary)
    compared = [{"name": primary, "a": "gcn", "b": "mlp"}]
    run_here(graph_study(tmp_path / "mine.py", name="graph-normalisation", comparisons=compared), tmp_path / "runs/own")
    done = tiebreak("claims", "--json", "--from", "runs")
    assert done.err == ""
    (found,) = (row for row in json.loads(done.out) if row["id"] == "gcn-rows-normalised")
    assert found["verdict"] == "holds", "the identity decides"
    assert ("runs/own/verdict.json", True) in [(each["file"], each["quality"]) for each in found["results"]]


def test_without_results_of_the_user_the_kept_ones_are_shown(tiebreak: Tiebreak) -> None:
    found = rows(tiebreak)
    assert found["attention-translates"]["verdict"] == "holds"
    assert found["more-epochs-help"]["verdict"] in ("undecided", "hint")


@pytest.mark.parametrize(
    "options", [("nowhere",), ("--from", "nowhere"), ("a", "--from", "b"), ("--out", "x.html"), ("--json", "--html")]
)
def test_bad_options_are_one_line(tiebreak: Tiebreak, options: tuple[str, ...]) -> None:
    done = tiebreak("claims", *options)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


def test_the_page_is_written(tiebreak: Tiebreak, tmp_path: Path) -> None:
    done = tiebreak("claims", "--html")
    assert (done.code, done.err, done.out.strip()) == (0, "", "claims.html")
    assert "attention-translates" in (tmp_path / "claims.html").read_text("utf-8")
    assert tiebreak("claims", "--html", "--out", "sub/page.html").out.strip() == "sub/page.html"
