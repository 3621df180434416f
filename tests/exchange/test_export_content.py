from __future__ import annotations

from support import sample_report
from support.tracker_files import SCORES
from tiebreak.exchange.export_content import ExportContent, of_scores, of_study
from tiebreak.verdict.table_verdict import TableQuestion, table_verdict


def of_sample() -> ExportContent:
    whole = sample_report.complete()
    return of_study(whole.study, whole.plan, whole.records, whole.verdict)


def test_every_test_metric_of_every_run_at_the_chosen_setting() -> None:
    content, study = of_sample(), sample_report.complete().study
    assert {row["metric"] for row in content.scores} == {"accuracy", "loss"}
    assert len(content.scores) == 2 * len(study.arms) * study.seeds
    assert content.quantity == "test accuracy"
    means = {row["arm"]: row["mean"] for row in content.arms()}
    assert means == {item.name: item.mean for item in sample_report.complete().verdict.designs}
    assert [row["name"] for row in content.comparisons()] == [item.name for item in content.verdict.comparisons]


def test_runs_without_a_result_have_no_row() -> None:
    whole = sample_report.partial()
    content = of_study(whole.study, whole.plan, whole.records, whole.verdict)
    for item in whole.verdict.designs:
        assert sum(row["arm"] == item.name and row["metric"] == "accuracy" for row in content.scores) == item.seeds


def test_a_table_keeps_its_data_sets() -> None:
    sets = {"x": SCORES, "y": SCORES}
    content = of_scores(table_verdict(sets, TableQuestion(name="My scores_2.csv", margin=0.01)), sets)
    assert content.label == "my-scores-2-csv"
    assert len(content.scores) == 28
    assert content.scores[0] == {
        "dataset": "x",
        "arm": "resnet",
        "seed": 0,
        "metric": "score",
        "score": SCORES["resnet"][0],
    }
