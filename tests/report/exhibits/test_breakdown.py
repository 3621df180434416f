from __future__ import annotations

import re

import numpy as np

from support import sample_findings, sample_report
from support.sample_exhibits import changed
from support.written import page, text
from tiebreak.report.exhibits import breakdown


def test_lines_are_means_over_seeds_with_intervals() -> None:
    length, position = breakdown.breakdowns(sample_findings.with_findings())
    assert (length.title, length.axes) == ("BLEU by length of the sentence", ("words in the sentence", "BLEU"))
    assert [line.arm for line in length.lines] == ["pool", "strided", "unpadded"]
    first = length.lines[0].points[0]
    scores = [sample_findings.curves("cnn-pool", seed)["length_y"][0] for seed in range(10)]
    assert abs(first.mean - np.mean(scores)) < 1e-5
    assert first.low < first.mean < first.high
    assert first.n == 10
    assert len(position.lines[0].points) == 64


def test_what_is_no_number_is_skipped() -> None:
    length, _ = breakdown.breakdowns(sample_findings.with_findings())
    assert [point.x for point in length.lines[1].points] == [5, 10, 15, 20, 30]
    evidence = changed(sample_findings.with_findings(), "curves", length_y=np.full(6, np.nan))
    assert [item.name for item in breakdown.breakdowns(evidence)] == ["position"]


def test_the_numbers_stand_in_a_table_with_the_number_of_examples() -> None:
    written = text(sample_findings.with_findings())
    assert "| words in the sentence | seeds | 5 | 10 | 15 | 20 | 30 | 40 |" in written
    assert re.search(r"^\| strided \| 10 \|( [\d.]+ \|){5} missing \|$", written, re.MULTILINE)
    assert "| examples | | 200 | 340 | 280 | 120 | 40 | 9 |" in written
    assert "one column of 4 is shown" in written
    assert "pool: n = 10 of 10 seeds" in page(sample_findings.with_findings())


def test_a_single_breakdown_gives_the_section_its_title() -> None:
    evidence = changed(sample_findings.with_findings(), "curves", position_x=None)
    assert '<h2 id="breakdown">BLEU by length of the sentence</h2>' in page(evidence)
    assert "## BLEU by length of the sentence" in text(evidence)
    assert "Scores by kind of example" in page(sample_findings.with_findings())


def test_one_seed_has_no_interval() -> None:
    evidence = sample_findings.shown(sample_report.complete(), seeds=1)
    length, _ = breakdown.breakdowns(evidence)
    point = length.lines[0].points[0]
    assert point.low == point.mean == point.high
    assert "pool: n = 1 of 10 seeds" in page(evidence)


def test_curves_without_labels_numbers_or_fitting_parts() -> None:
    bare = changed(
        sample_findings.with_findings(), "curves", length_label=None, length_title=None, length_n=np.arange(2)
    )
    length, _ = breakdown.breakdowns(bare)
    assert length.title == "score by x"
    assert breakdown.content(bare)["breakdown"][0].examples == []
    for broken in (np.asarray(["a"]), np.zeros((2, 2)), np.zeros(0)):
        evidence = changed(sample_findings.with_findings(), "curves", length_x=broken, position_x=broken)
        assert breakdown.breakdowns(evidence) == []
        assert breakdown.figures(evidence)["breakdown_panels"] == []


def test_bands_end_where_the_metric_ends() -> None:
    evidence = changed(
        sample_findings.with_findings(),
        "curves",
        length_label=np.asarray(["words", "test accuracy"]),
        length_y=np.asarray([0.99, 0.5, 0.98, 0.97, 0.02, 0.5], np.float32),
    )
    length = breakdown.breakdowns(evidence)[0]
    ends = [end for line in length.lines for point in line.points for end in (point.low, point.high)]
    assert 0 <= min(ends) <= max(ends) <= 1
