from __future__ import annotations

import re

import numpy as np

from support import sample_findings, sample_report
from support.sample_study import sample_study
from support.written import fresh_page, page, text
from tiebreak.report.page import document, metric_table


def test_the_studys_own_metric_comes_first() -> None:
    with sample_findings.many_metrics():
        study = sample_findings.of_study(sample_study(metric="loss", claims=[], reported=[])).study
        assert metric_table.ordered(study) == ["loss", "accuracy", "bleu", "character_error"]


def test_all_metrics_stand_in_a_table_with_deviation_and_n() -> None:
    with sample_findings.many_metrics():
        evidence = sample_findings.measured(sample_report.complete())
        names, rows = metric_table.table(evidence)
        assert names == ["accuracy", "loss (lower is better)", "bleu", "character error (lower is better)"]
        scores = list(evidence.scores("pool", evidence.chosen("pool"), "bleu").values())
        assert rows[0].cells[2] == (f"{np.mean(scores):.2f}", f"{np.std(scores, ddof=1):.3f}", "10")
        written = page(evidence)
    assert "All metrics on test" in written
    assert "Character error (lower is better)" in written


def test_one_run_has_no_deviation_and_none_no_table() -> None:
    alone = sample_report.without(sample_report.complete(), lambda run: run.seed > 0)
    assert metric_table.table(alone)[1][0].cells[0][1:] == (metric_table.NONE, "1")
    assert metric_table.table(sample_report.empty()) == ([], [])


def test_every_recorded_metric_has_a_learning_curve() -> None:
    with sample_findings.many_metrics():
        written = page(sample_findings.measured(sample_report.complete()))
        without = fresh_page(sample_report.complete())
    for quantity in ("validation accuracy", "validation loss", "validation bleu", "validation character error"):
        assert f'aria-label="{quantity} per epoch, mean over seeds.' in written
    assert "validation bleu" not in without
    assert "In loss and character error lower" in written


def test_seconds_per_epoch_come_with_their_caution() -> None:
    told = metric_table.epoch_seconds(sample_report.complete())
    assert re.match(r"pool 1\.[12] s, strided 1\.[12] s, unpadded 1\.[12] s \(median", told)
    assert "nor which design is faster" in told
    assert metric_table.epoch_seconds(sample_report.empty()) == ""


def test_a_study_in_which_less_is_better_reads_right() -> None:
    evidence = sample_findings.lower_is_better()
    assert evidence.verdict.primary.verdict == "a"
    assert (evidence.verdict.primary.difference or 0) < 0
    written, markdown = page(evidence), text(evidence)
    assert "a negative difference favours A" in re.sub(r"\s+", " ", written)
    assert "a negative difference favours A" in markdown
    assert "Test loss (lower is better)" in written
    assert "← pool better" in written
    assert "pool scored lower" in written
    assert "scored higher" not in written
    assert "(lower is better)" in document.fragment(evidence)


def test_a_comparison_in_another_metric_says_so() -> None:
    questions = [
        {"name": "first", "a": "pool", "b": "strided", "primary": True},
        {"name": "second", "a": "pool", "b": "strided", "metric": "loss", "margin": 0.01},
    ]
    evidence = sample_findings.of_study(sample_study(comparisons=questions, claims=[], reported=[]))
    written = page(evidence)
    assert 'second <span class="small">in loss</span>' in written
    assert "where no other metric is named" in written
    assert "| second, in loss |" in text(evidence)
