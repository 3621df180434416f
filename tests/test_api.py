"""The whole way on tiny data: real designs, real worker processes, a verdict and a report."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import tiebreak as tb
from support import bad_studies
from support.small_study import loop_machine
from tiebreak import api
from tiebreak.api import Result
from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import Message, Note, RunEnded, TrainingStarted
from tiebreak.plan.runs import PLAN_FILE
from tiebreak.report.page import comparisons
from tiebreak.study import parsing
from tiebreak.study.schema import Study

Make = Callable[..., Study]
POOL, STRIDED = bad_studies.POOL, bad_studies.STRIDED

EVERY_QUESTION: dict[str, Any] = {
    "question": "Is <b>pooling</b> & co. better?",
    **bad_studies.TUNED,
    "arms": [
        POOL,
        STRIDED,
        {**POOL, "name": "pool-2", "options": {"shuffle_pixels": True}},
        {**STRIDED, "name": "strided-2", "options": {"shuffle_pixels": True}},
        {**POOL, "name": "shifted", "evaluation": {"shift": 14}},
        {**POOL, "name": "longer", "epochs_times": 2},
    ],
    "comparisons": [
        {**bad_studies.PAIR, "name": "two designs"},
        {"name": "two task options", "a": "pool", "b": "pool-2"},
        {"name": "two evaluations", "a": "pool", "b": "shifted"},
        {**bad_studies.INTERACTION, "name": "interaction"},
        {**bad_studies.SETTING, "name": "best setting"},
        {"name": "two budgets", "a": "longer", "b": "pool"},
        {"name": "another metric", "a": "pool", "b": "strided", "metric": "loss", "margin": 0.1},
    ],
    "claims": [
        {**bad_studies.CLAIM, "comparison": "two designs"},
        {**bad_studies.CLAIM, "id": "c2", "comparison": "interaction", "data": "octmnist"},
    ],
    "reported": [{**bad_studies.REPORTED, "setting": {"lr": 0.1}}],
}


def listen(heard: list[Message]) -> Callable[[Message], None]:
    return heard.append


@pytest.fixture(scope="module")
def result(tiny_study: Make, tiny_data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("api") / "out"
    return tb.run(
        tiny_study(**EVERY_QUESTION),
        folder,
        machine=loop_machine(tiny_data_dir),
        listen=listen([]),
    )


@pytest.fixture
def copy(result: Result, tmp_path: Path) -> Path:
    """The finished folder, for a test to change."""
    return copytree(result.folder, tmp_path / "out")


@pytest.mark.parametrize("name", [item["name"] for item in EVERY_QUESTION["comparisons"]])
def test_every_kind_of_question_runs_to_a_verdict(name: str, result: Result) -> None:
    (item,) = [item for item in result.verdict.comparisons if item.name == name]
    assert item.seeds == 2
    assert item.difference is not None
    assert item.verdict == "undecided"  # two seeds can decide nothing
    assert item.seeds_needed
    assert item.sentence


def test_all_runs_are_trained_once_and_shared_where_only_the_evaluation_differs(result: Result) -> None:
    assert result.verdict.finished == result.verdict.planned == len(result.records.runs) == 5 * 2 * 2
    assert all(record.status == "done" for record in result.records.runs.values())
    for identity in result.plan.arm("pool").runs.values():
        assert result.records.finals[identity].keys() == {"default", "shift=14"}
    assert len(result.records.epochs) == 4 * 2 * 2  # `longer` continues the path of `pool`


def test_the_arms_are_what_they_say(result: Result) -> None:
    designs = {arm.name: arm for arm in result.verdict.designs}
    assert all(arm.seeds == 2 and arm.failed == arm.missing == 0 for arm in designs.values())
    assert designs["pool"].mean is not None
    assert designs["shifted"].mean is not None
    assert designs["shifted"].mean < 0.7  # moved by half its width, left looks like right
    assert designs["longer"].mean is not None
    assert designs["longer"].mean >= designs["pool"].mean
    assert designs["longer"].mean > 0.9  # the data is easy


def test_claims_and_figures_are_held_against_the_runs(result: Result) -> None:
    assert [claim.verdict for claim in result.verdict.claims] == ["undecided", "hint"]
    assert result.verdict.reported[0].seeds == 2


def test_the_folder_holds_what_the_design_promises(result: Result) -> None:
    promised = "study.toml plan.json records.sqlite records.sha256 checkpoints verdict.json report.md report.html"
    present = {path.name for path in result.folder.iterdir() if not path.name.startswith((".", "records.sqlite-"))}
    assert present == set(promised.split())
    assert result.report == result.folder / "report.html"
    assert json.loads((result.folder / "verdict.json").read_text()) == json.loads(result.verdict.to_json())
    assert Study.load(str(result.folder / "study.toml")) == result.study


def test_a_notebook_shows_the_answer_and_escapes_everything(result: Result) -> None:
    shown = result._repr_html_().replace("\N{MINUS SIGN}", "-")
    assert html.escape(comparisons.answer(result.verdict)) in shown
    assert "Is &lt;b&gt;pooling&lt;/b&gt; &amp; co. better?" in shown
    assert "<b>pooling" not in shown


def test_opening_a_folder_gives_the_same_and_writes_nothing(result: Result, copy: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    opened = tb.open_result(copy)
    assert opened.verdict == result.verdict
    assert opened.plan == result.plan
    after = {path: path.stat().st_mtime_ns for path in copy.rglob("*") if not path.name.startswith("records.sqlite-")}
    assert after == {path: before[path] for path in after}


def test_running_again_trains_nothing_and_answers_the_same(result: Result, tiny_data_dir: Path) -> None:
    heard: list[Message] = []
    report = result.report.stat().st_mtime_ns
    again = tb.run(result.study, result.folder, machine=Machine(data_dir=tiny_data_dir), listen=listen(heard))
    assert again.verdict == result.verdict
    assert heard == [TrainingStarted(runs={}, steps=12, stored=20, workers=0)]
    assert result.report.stat().st_mtime_ns == report


def test_a_report_that_was_lost_is_written_again(result: Result, copy: Path) -> None:
    (copy / "report.html").unlink()
    (copy / "verdict.json").write_text("{}")
    assert api.conclude(copy).report.is_file()
    assert json.loads((copy / "verdict.json").read_text())["answer"] == result.verdict.answer


def test_another_study_is_not_mixed_into_a_folder(copy: Path, tiny_study: Make, tiny_data_dir: Path) -> None:
    before = (copy / "study.toml").read_text()
    with pytest.raises(tb.TiebreakError, match=r"'tiny', not 'other'.*--out"):
        tb.run(tiny_study(name="other"), copy, machine=Machine(data_dir=tiny_data_dir), listen=listen([]))
    assert (copy / "study.toml").read_text() == before


def test_another_precision_is_not_mixed_into_a_comparison(copy: Path, result: Result, tiny_data_dir: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*") if not path.name.startswith("records.")}
    machine = Machine(data_dir=tiny_data_dir, precision="bf16")
    with pytest.raises(tb.TiebreakError, match=r"are in float32, and --precision bf16 .*leave out --precision.*--out"):
        tb.run(result.study.changed(seeds=3), copy, machine=machine, listen=listen([]))
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_a_changed_study_says_what_changed(copy: Path, result: Result, tiny_data_dir: Path) -> None:
    heard: list[Message] = []
    changed = result.study.model_copy(update={"margin": 0.5})
    answer = tb.run(changed, copy, machine=Machine(data_dir=tiny_data_dir), listen=listen(heard)).verdict
    assert isinstance(heard[0], Note)
    assert str(copy) in heard[0].text
    assert "changed" in heard[0].text
    assert "(margin)" in heard[0].text
    assert (answer.margin, answer.finished) == (0.5, result.verdict.finished)


def test_a_study_file_that_the_plan_was_not_made_for_is_one_line(copy: Path, result: Result) -> None:
    (copy / "study.toml").write_text(parsing.to_toml(result.study.changed(seeds=3)))
    with pytest.raises(tb.TiebreakError, match=r"study\.toml: damaged or edited.*edit your own file"):
        tb.open_result(copy)


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(tb.TiebreakError, match=r"gone: no such folder.*--out"):
        tb.open_result(tmp_path / "gone")
    with pytest.raises(tb.TiebreakError, match=r"no plan\.json"):
        tb.open_result(tmp_path)


def test_a_folder_without_its_study_is_one_line(copy: Path) -> None:
    (copy / "study.toml").unlink()
    with pytest.raises(tb.TiebreakError, match=r"study\.toml: missing.*tiebreak run"):
        tb.open_result(copy)


def test_a_lost_plan_is_made_again_and_nothing_is_trained(copy: Path, result: Result, tiny_data_dir: Path) -> None:
    (copy / PLAN_FILE).write_text("{")
    heard: list[Message] = []
    again = tb.run(result.study, copy, machine=Machine(data_dir=tiny_data_dir), listen=listen(heard))
    assert again.plan == result.plan
    assert not any(isinstance(message, RunEnded) for message in heard)


@pytest.mark.usefixtures("here")
def test_more_seeds_extend_what_is_there_and_divergence_is_a_result(
    tiny_study: Make, tiny_data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wild = {**STRIDED, "fixed": {"lr": 1e9}}
    machine, study = loop_machine(tiny_data_dir), tiny_study(arms=[POOL, wild], seeds=1)
    tb.run(study, tmp_path / "out", machine=machine)  # without a listener, progress is printed
    assert "training 2 runs" in capsys.readouterr().out
    heard: list[Message] = []
    verdict = tb.run(study.changed(seeds=2), tmp_path / "out", machine=machine, listen=listen(heard)).verdict
    assert isinstance(heard[0], TrainingStarted)
    assert heard[0].stored == 2
    labels = sorted(run.label for run in heard[0].runs.values())
    assert labels == ["cnn-pool default seed 1", "cnn-strided default seed 1"]
    assert [(arm.seeds, arm.failed, arm.missing) for arm in verdict.designs] == [(2, 0, 0), (0, 2, 0)]
    assert any("strided" in line and "2 runs" in line and "diverged" in line for line in verdict.warnings)


def test_the_package_offers_what_it_lists() -> None:
    assert dir(tb) == sorted(tb.__all__)
    for name in tb.__all__:
        assert getattr(tb, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Studdy'"):
        tb.Studdy  # noqa: B018
    assert tb.Study.load("pooling").name == "pooling"


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ["torch", "numpy", "scipy", "pydantic", "rich", "typer", "matplotlib", "jinja2", "sympy"]
    code = f"import sys, tiebreak; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_study_and_a_folder_can_be_read_without_torch(result: Result) -> None:
    code = (
        "import sys, tiebreak as tb; tb.Study.load('pooling').quickened();"
        f"print(tb.open_result({str(result.folder)!r}).verdict.study, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "tiny False"


def test_a_study_may_be_given_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(tb.TiebreakError, match="did you mean 'pooling'"):
        tb.run("poolin", tmp_path / "out")
    with pytest.raises(tb.TiebreakError, match="octmnist"):  # the whole study needs data that is not here
        tb.run("pooling", tmp_path / "out", machine=Machine(data_dir=tmp_path))
    assert not (tmp_path / "out").exists()
