from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.tracker_files import trainer_states
from tiebreak.errors import TiebreakError
from tiebreak.exchange.trainer_state import read_trainer_states


def test_the_latest_checkpoint_counts_and_results_files_are_added(tmp_path: Path) -> None:
    folder = trainer_states(tmp_path)
    (folder / "vit" / "seed-0" / "all_results.json").write_text(json.dumps({"predict_f1": 0.5}))
    found = read_trainer_states(folder)
    rows = {cells[0]: dict(zip(found.columns, cells, strict=True)) for _, cells in found.rows}
    assert rows["vit/seed-0"]["step"] == 100
    assert rows["vit/seed-0"]["predict_f1"] == 0.5
    assert rows["vit/seed-1"]["predict_f1"] is None


def test_the_state_of_the_run_itself_is_later_than_its_checkpoints(tmp_path: Path) -> None:
    folder = trainer_states(tmp_path)
    own = folder / "vit" / "seed-0" / "trainer_state.json"
    own.write_text(json.dumps({"log_history": [{"eval_accuracy": 0.25}]}))
    found = read_trainer_states(folder)
    place = list(found.columns).index("eval_accuracy")
    assert [cells[place] for _, cells in found.rows if cells[0] == "vit/seed-0"] == [0.25]


@pytest.mark.parametrize("text", ["[]", "{}", "no json", '{"log_history": 3}'])
def test_other_files_of_that_name_are_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "trainer_state.json").write_text(text)
    with pytest.raises(TiebreakError, match=r"trainer_state\.json"):
        read_trainer_states(tmp_path)
