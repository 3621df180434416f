from __future__ import annotations

from pathlib import Path

import pytest

from support import hand_made
from support.damage import graph_study, run_here
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE
from tiebreak.results.foreign_files import refuse_foreign_files
from tiebreak.results.store import STORE_FILE


@pytest.mark.parametrize(
    "name", ["study.toml", "plan.json", "verdict.json", "report.html", "designs.py", "blocks/a.py"]
)
def test_a_folder_with_files_of_somebody_else_is_refused(tmp_path: Path, name: str) -> None:
    modules = ("designs.py", "blocks/a.py")
    refuse_foreign_files(tmp_path / "new", modules)
    (tmp_path / "notes.txt").write_text("mine")
    refuse_foreign_files(tmp_path, modules)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(TiebreakError, match=f"its {name} would be replaced; give another --out"):
        refuse_foreign_files(tmp_path, modules)
    assert (tmp_path / name).read_text() == "mine"


def test_designs_of_the_users_project_are_in_the_way_of_own_designs_only(tmp_path: Path) -> None:
    (tmp_path / "designs.py").write_text("mine")
    refuse_foreign_files(tmp_path, ())


def test_a_results_folder_without_its_store_is_still_one(tmp_path: Path) -> None:
    (tmp_path / PLAN_FILE).write_text(hand_made.plan(hand_made.study()).model_dump_json())
    refuse_foreign_files(tmp_path, ())


@pytest.mark.usefixtures("here")
def test_nothing_is_written_into_a_folder_of_somebody_else(tmp_path: Path) -> None:
    study, project = graph_study(tmp_path / "mine.py"), tmp_path / "project"
    project.mkdir()
    (project / "designs.py").write_text("DESIGNS = {}  # another")
    with pytest.raises(TiebreakError, match=r"designs\.py would be replaced"):
        run_here(study, project)
    assert [path.name for path in project.iterdir()] == ["designs.py"]
    run_here(study, tmp_path / "runs")
    (tmp_path / "runs" / STORE_FILE).unlink()
    run_here(study, tmp_path / "runs")
