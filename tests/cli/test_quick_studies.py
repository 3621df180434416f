"""`tiebreak claims --run quick`: what is missing is run, what is there is not, an interruption is continued."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from support.damage import graph_study, run_here
from tiebreak import api
from tiebreak.cli.quick_studies import missing_studies, run_quick
from tiebreak.report.terminal.safe_console import SafeConsole
from tiebreak.study import parsing
from tiebreak.study.schema import Study
from tiebreak.theory.claims import LEDGER


def test_in_an_empty_folder_every_study_of_the_ledger_is_missing_in_its_small_version(tmp_path: Path) -> None:
    found = missing_studies(tmp_path / "runs")
    assert [study.name for study, _ in found] == list(dict.fromkeys(entry.study for entry in LEDGER if entry.study))
    assert found[0][0] == Study.load("pooling").quickened()
    assert found[0][1] == tmp_path / "runs" / "pooling"


def test_a_small_version_goes_on_where_it_was_and_leaves_the_full_study_alone(tmp_path: Path) -> None:
    for study in (Study.load("pooling").quickened(), Study.load("heads")):
        folder = tmp_path / study.name
        folder.mkdir()
        (folder / "study.toml").write_text(parsing.to_toml(study), "utf-8")
    places = {study.name: path.name for study, path in missing_studies(tmp_path)}
    assert (places["pooling"], places["heads"]) == ("pooling", "heads-quick")


@pytest.mark.usefixtures("here")
def test_a_study_with_a_result_is_not_missing(tmp_path: Path) -> None:
    asked = [{"name": "multi vs single", "a": "gcn", "b": "mlp"}]
    run_here(graph_study(tmp_path / "mine.py", name="heads", comparisons=asked), tmp_path / "runs" / "mine")
    run_here(graph_study(tmp_path / "mine.py", name="pooling"), tmp_path / "runs" / "pooling")
    missing = {study.name: path.name for study, path in missing_studies(tmp_path / "runs")}
    assert "heads" not in missing
    assert missing["pooling"] == "pooling-quick"  # another study of that name decides none of its claims


@pytest.mark.usefixtures("here")
def test_an_interruption_keeps_what_was_trained_and_a_bad_study_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (graph_study(tmp_path / f"{name}.py", name=name) for name in ("one", "two"))
    bad = first.model_copy(update={"data": "nothing"})
    todo = [(bad, tmp_path / "bad"), (first, tmp_path / "one"), (second, tmp_path / "two")]
    train = api.run

    def stopped(study: Study, *arguments: object, **options: object) -> object:
        if study.name == "two":
            raise KeyboardInterrupt
        return train(study, *arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(api, "run", stopped)
        with pytest.raises(typer.Exit) as raised:
            run_quick(tmp_path, SafeConsole(), todo)
    assert raised.value.exit_code == 130
    said = capsys.readouterr()
    assert "continues" in said.err
    assert "study 2 of 3: one" in said.out
    assert (tmp_path / "one" / "verdict.json").is_file()
    assert not (tmp_path / "two").exists()
    assert run_quick(tmp_path, SafeConsole(), todo) == 1  # the bad one
    assert (tmp_path / "two" / "verdict.json").is_file()


def test_an_interruption_before_the_first_study_says_how_to_continue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> Iterator[tuple[Study, Path]]:
        yield from ()
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as raised:
        run_quick(tmp_path, SafeConsole(), interrupted())
    assert raised.value.exit_code == 130
    assert "continues" in capsys.readouterr().err
