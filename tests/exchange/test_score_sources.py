"""Every kind of file is recognised and read to the same scores."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from support import tracker_files
from support.tracker_files import ARMS, SCORES, SEEDS, value
from tiebreak.errors import TiebreakError
from tiebreak.exchange.pick import Columns
from tiebreak.exchange.score_sources import find_source, read_score_table, read_scores

RUNS = [(arm, seed) for arm in ARMS for seed in range(SEEDS)]


def text(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines))
    return path


def long(folder: Path) -> Path:
    return text(folder / "a.csv", ["arm,seed,score", *(f"{arm},{seed},{value(arm, seed)}" for arm, seed in RUNS)])


def wide(folder: Path) -> Path:
    rows = [f"{seed},{value('resnet', seed)},{value('vit', seed)}" for seed in range(SEEDS)]
    return text(folder / "wide.csv", ["seed,resnet,vit", *rows])


def lines(folder: Path) -> Path:
    rows = [{"config": {"arch": arm, "seed": seed}, "acc": value(arm, seed), "tags": [1]} for arm, seed in RUNS]
    return text(folder / "a.jsonl", [json.dumps(row) for row in rows])


def array(folder: Path) -> Path:
    rows = [{"arm": arm, "seed": seed, "score": value(arm, seed)} for arm, seed in RUNS]
    return text(folder / "a.json", [json.dumps(rows)])


CASES: dict[str, tuple[Callable[[Path], Path], str, Columns]] = {
    "long": (long, "csv", Columns()),
    "wide": (wide, "csv", Columns()),
    "wide by name": (wide, "csv", Columns(score="resnet,vit")),
    "json lines": (lines, "json", Columns(arm="config.arch", seed="config.seed", score="acc")),
    "json": (array, "json", Columns()),
    "wandb runs": (
        lambda folder: tracker_files.wandb_runs(folder / "w.csv"), "wandb", Columns(arm="arch", score="val/acc"),
    ),
    "wandb names": (lambda folder: tracker_files.wandb_runs(folder / "w.csv"), "wandb", Columns(score="val/acc")),
    "wandb chart": (lambda folder: tracker_files.wandb_chart(folder / "c.csv"), "wandb", Columns()),
    "mlruns": (tracker_files.mlruns, "mlflow", Columns(arm="arch")),
    "mlruns names": (tracker_files.mlruns, "mlflow", Columns(run_name="{arm}-{seed}")),
    "trainer states": (tracker_files.trainer_states, "trainer-state", Columns(score="eval_accuracy")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_same_scores_from_every_kind_of_file(name: str, tmp_path: Path) -> None:
    make, source, columns = CASES[name]
    path = make(tmp_path)
    assert find_source(path) == source
    found = read_score_table(path, columns)
    assert {
        arm: dict(sorted(scores.items(), key=lambda item: int(item[0]))) for arm, scores in found.sets[""].items()
    } == {arm: pytest.approx(scores) for arm, scores in SCORES.items()}
    assert found.seeded


def test_runs_that_did_not_finish_are_left_out_and_counted(tmp_path: Path) -> None:
    notes = read_score_table(tracker_files.wandb_runs(tmp_path / "w.csv"), Columns(score="val/acc")).notes
    assert any("left out" in note and "1 crashed" in note for note in notes)
    notes = read_score_table(tracker_files.mlruns(tmp_path), Columns(arm="arch")).notes
    assert any("left out" in note and "1 run" in note for note in notes)


def test_the_api_reads_one_data_set(tmp_path: Path) -> None:
    assert read_scores(long(tmp_path)) == SCORES
    sets = text(tmp_path / "sets.csv", ["dataset,arm,seed,score", "x,a,0,1", "x,b,0,2", "y,a,0,1", "y,b,0,2"])
    with pytest.raises(TiebreakError, match="2 data sets"):
        read_scores(sets)
    assert list(read_score_table(sets).sets) == ["x", "y"]


def test_what_is_not_known_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"Is a directory.*mlruns"):
        find_source(tmp_path)
    with pytest.raises(TiebreakError, match="only files and folders"):
        read_score_table("https://example.org/scores.csv")
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(TiebreakError, match="tiebreak verdict"):
        find_source(tmp_path)


def test_a_folder_of_two_tools_asks_which(tmp_path: Path) -> None:
    tracker_files.trainer_states(tmp_path)
    (tmp_path / "hf" / "events.out.tfevents.1.x").write_bytes(b"")
    with pytest.raises(TiebreakError, match=r"--from (tensorboard or trainer-state|trainer-state or tensorboard)"):
        find_source(tmp_path / "hf")
