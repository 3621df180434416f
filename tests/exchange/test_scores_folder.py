from __future__ import annotations

from pathlib import Path

import pytest

from support.tracker_files import SCORES
from tiebreak.errors import TiebreakError
from tiebreak.exchange.pick import ScoreTable
from tiebreak.exchange.scores_folder import is_scores_folder, read_scores_folder, scores_csv, write_scores_folder
from tiebreak.verdict.table_verdict import TableQuestion, table_verdict


def test_a_folder_is_read_as_it_was_written(tmp_path: Path) -> None:
    sets = {
        "x": {arm: dict(own) for arm, own in SCORES.items()},
        "y, 2": {arm: dict(own) for arm, own in SCORES.items()},
    }
    verdict = table_verdict(sets, TableQuestion(name="s.csv", margin=0.01))
    page = write_scores_folder(tmp_path / "out", verdict, ScoreTable(sets=sets, score="acc", seeded=True))
    assert page.is_file()
    assert is_scores_folder(tmp_path / "out")
    assert read_scores_folder(tmp_path / "out") == (verdict, sets)


def test_the_results_of_a_study_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}")
    verdict = table_verdict({"": SCORES}, TableQuestion(name="s.csv", margin=0.01))
    with pytest.raises(TiebreakError, match="results of a study"):
        write_scores_folder(tmp_path, verdict, ScoreTable(sets={}, score="acc", seeded=True))
    assert not is_scores_folder(tmp_path)
    assert scores_csv({"": {"a": {0: 0.1}}}) == "arm,seed,score\na,0,0.1\n"
