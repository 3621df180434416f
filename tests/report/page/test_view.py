from __future__ import annotations

import dataclasses
import math

import pytest

from support import sample_exhibits, sample_findings, sample_report
from tiebreak.report import formatting
from tiebreak.report.evidence import Evidence
from tiebreak.report.page import view


def facts(evidence: Evidence) -> dict[str, tuple[str, str]]:
    return {title: (value, remark) for title, value, remark in view.content(evidence)["facts"]}


def test_sections_without_content_are_not_in_the_contents() -> None:
    plain, exhibits = sample_report.complete(), sample_exhibits.with_exhibits()
    assert not set(view.content(plain)["contents"]) & {"reported", "agreement", *view.EXHIBITS}
    found = view.content(exhibits)["contents"]
    assert {"reported", "robustness", "examples", "confusions", "activations"} <= set(found)
    assert list(found) == [anchor for anchor in view.SECTIONS if anchor in found], "in the order of the page"


def test_a_single_breakdown_gives_its_section_its_name() -> None:
    assert view.content(sample_report.complete())["headings"]["breakdown"] == view.SECTIONS["breakdown"][1]
    one = sample_exhibits.changed(sample_findings.with_findings(), "curves", position_x=None)
    assert view.content(one)["headings"]["breakdown"] == "BLEU by length of the sentence"


def test_the_facts_count_seeds_time_and_parameters() -> None:
    found = facts(sample_report.complete())
    assert found["Seeds"][0] == "10 of 10"
    assert found["Training time"][1].startswith("90 of 90 planned runs")
    assert found["Parameters"][0] == "225,612"
    partial = facts(sample_report.partial())
    assert partial["Seeds"][0] == "4 of 10"
    assert "6 diverged or failed" in partial["Training time"][1]


def test_arms_of_different_size_are_both_counted() -> None:
    question = {"name": "sizes", "a": "pool", "b": "unpadded"}
    size, arms = facts(sample_report.with_question(question))["Parameters"]
    assert (size, arms) == ("225,612 / 169,292", "pool / unpadded")


def test_differences_in_sentences_are_written_as_asked() -> None:
    evidence = sample_report.partial()
    plain, typographic = view.content(evidence), view.content(evidence, number=formatting.signed_minus)
    texts = [(item["answer"], *dict(item["sentences"]).values(), *(row.reason for row in item["claims"]))
             for item in (plain, typographic)]  # fmt: skip
    assert any("-0." in text for text in texts[0])
    assert not any("−0." in text for text in texts[0])
    assert [text.replace("-0.", "−0.") for text in texts[0]] == list(texts[1])


def test_a_question_about_settings_has_a_figure_for_each_other_setting() -> None:
    evidence = sample_report.with_question({"kind": "setting", "name": "best", "arm": "pool", "expect": {"lr": 0.1}})
    drawn = view.figures(evidence)["main_figures"]
    assert len(drawn) == 2
    assert all(main.wide and main.pairs for main in drawn)
    content = view.content(evidence)
    assert content["badge"] == "pool at lr=0.1 is best"
    assert [main.subtraction for main in content["mains"]] == [
        "pool at lr=0.1 − pool at lr=0.01",
        "pool at lr=0.1 − pool at lr=0.001",
    ]


def test_the_legend_of_the_curves_counts_the_seeds_at_the_last_epoch() -> None:
    legend = view.figures(sample_report.partial())["curve_legend"]
    assert [item.text.partition(":")[0] for item in legend] == [
        f"{arm}, lr=0.1" for arm in ("pool", "strided", "unpadded")
    ]
    assert ["n = 10 of 10" in item.text for item in legend] == [True, False, False]


def test_runs_that_log_the_training_loss_only_are_counted_and_without_curves_there_is_no_legend() -> None:
    whole = sample_report.complete()

    def unknown(*keys: str) -> Evidence:
        lost = dict.fromkeys(keys, math.nan)
        epochs = {
            trajectory: {n: dataclasses.replace(one, metrics={**one.metrics, **lost}) for n, one in own.items()}
            for trajectory, own in whole.records.epochs.items()
        }
        return dataclasses.replace(whole, records=dataclasses.replace(whole.records, epochs=epochs))

    assert "n = 10 of 10" in view.figures(unknown("val_accuracy"))["curve_legend"][0].text
    assert view.notebook_figures(unknown("val_accuracy"))["curve_legend"] == []


def test_published_figures_have_a_panel_for_each_metric() -> None:
    panels = view.figures(sample_report.with_reported())["reported_panels"]
    assert [panel.quantity for panel in panels] == [
        "validation accuracy",
        "test accuracy",
        "training loss, running mean over epochs",
    ]
    assert all("report R" in panel.svg for panel in panels)


def test_a_warning_of_plan_and_verdict_is_shown_once() -> None:
    evidence = sample_report.complete()
    plan = evidence.plan.model_copy(update={"warnings": ("few seeds",)})
    verdict = evidence.verdict.model_copy(update={"warnings": ("few seeds", "other")})
    content = view.content(dataclasses.replace(evidence, plan=plan, verdict=verdict))
    assert content["warnings"] == ["few seeds", "other"]


def test_the_reports_are_introduced_where_the_first_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = sample_report.complete()
    assert not view.content(evidence)["arms_reports_line"]
    monkeypatch.setattr(
        "tiebreak.report.page.tables.arm_descriptions", lambda study, plan: [("old", "the RNN of report R4")]
    )
    found = view.content(evidence)
    assert "R0 to R4" in found["arms_reports_line"]
    assert not found["reports_line"]
