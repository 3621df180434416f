from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

import numpy as np

from support import sample_findings, sample_report
from support.written import fresh_page, page, text
from tiebreak.report.figures import agreement
from tiebreak.results.correlation import spearman


def test_metrics_that_rank_alike_agree_whichever_way_is_better() -> None:
    with sample_findings.many_metrics():
        found = agreement.content(sample_findings.measured(sample_report.complete()))
    assert found["agreement_names"] == ["accuracy", "loss", "bleu"]
    (_, loss), (_, bleu), (name, error) = found["agreement"]
    assert loss == ["+1.00 (270)", "", ""]  # 1.1 - accuracy: less is better
    assert (name, error[0]) == ("character error", "+1.00 (270)")
    assert re.fullmatch(r"\+0\.\d\d \(2\d\d\)", bleu[0])
    assert int(bleu[0][-4:-1]) < 270  # epochs without it are left out
    assert "no p value" in found["agreement_note"]


def test_a_metric_that_never_changes_has_no_correlation() -> None:
    with sample_findings.many_metrics():
        evidence = sample_findings.measured(sample_report.complete())
        epochs = {
            trajectory: {
                epoch: dataclasses.replace(record, metrics={**record.metrics, "val_bleu": 1.0})
                for epoch, record in own.items()
            }
            for trajectory, own in evidence.records.epochs.items()
        }
        records = dataclasses.replace(evidence.records, epochs=epochs)
        found = agreement.content(dataclasses.replace(evidence, records=records))
    rows = dict(found["agreement"])
    assert rows["bleu"][0] == f"{agreement.NONE} (270)"
    assert rows["loss"][0] == "+1.00 (270)"


def test_the_correlation_is_that_of_the_recorded_values() -> None:
    with sample_findings.many_metrics():
        evidence = sample_findings.measured(sample_report.complete())
        found, rows = agreement.recorded(evidence), dict(agreement.content(evidence)["agreement"])
    assert found is not None
    assert (found.runs, found.values.shape, len(found.places)) == (90, (4, 270), 270)
    accuracy, bleu = found.values[0], found.values[2]
    both = np.isfinite(bleu)
    assert rows["bleu"][0].startswith(f"{spearman(accuracy[both], bleu[both]):+.2f} (")


def test_the_panels_are_drawn_with_at_most_so_many_dots() -> None:
    with sample_findings.many_metrics():
        found = agreement.figures(sample_findings.measured(sample_report.complete()))
        assert agreement.figures(sample_report.empty())["agreement_panels"] == []
    assert [
        ElementTree.fromstring(svg).get("aria-label", "").partition(",")[0] for svg in found["agreement_panels"]
    ] == [
        "loss against accuracy",
        "bleu against accuracy",
        "character error against accuracy",
    ]
    assert f"{agreement.MOST_DOTS} of 270" in found["agreement_dots"]


def test_two_metrics_have_no_section_of_agreement() -> None:
    assert 'id="agreement"' not in page(sample_report.complete())
    with sample_findings.many_metrics():
        for evidence in (sample_report.empty(), sample_report.complete()):  # only two of the four were recorded
            assert 'id="agreement"' not in fresh_page(evidence)
        evidence = sample_findings.measured(sample_report.complete())
        assert "Do the metrics agree?" in page(evidence)
        assert "| character error | +1.00 (270) | +1.00 (270) |" in text(evidence)
