"""All runs as rows: one for each arm, setting and seed, with every score that was recorded."""

from __future__ import annotations

from support import sample_report
from tiebreak.results.score_rows import score_rows


def test_every_planned_run_is_a_row_with_its_scores() -> None:
    it = sample_report.complete()
    rows = score_rows(it.tally)
    assert len(rows) == len(it.study.arms) * len(it.study.settings()) * it.study.seeds
    first = rows[0]
    assert (first["arm"], first["lr"], first["seed"], first["status"]) == ("pool", 0.1, 0, "done")
    assert first["chosen"] is True
    assert first["accuracy"] == it.scores("pool", {"lr": 0.1}, "accuracy")[0]
    assert first["val_accuracy"] == it.scores("pool", {"lr": 0.1}, "val_accuracy")[0]


def test_a_run_without_a_result_is_a_row_without_scores() -> None:
    rows = score_rows(sample_report.empty().tally)
    assert {row["status"] for row in rows} == {"missing"}
    assert {row["accuracy"] for row in rows} == {None}
