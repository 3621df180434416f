from __future__ import annotations

import numpy as np
import pytest

from support import sample_findings
from support.sample_exhibits import changed
from support.written import page, text
from tiebreak.report.exhibits import graph_drawing


def test_each_arm_has_a_drawing_with_its_right_answers() -> None:
    evidence = sample_findings.with_findings()
    drawn = graph_drawing.figures(evidence)
    wrong = [int((arrays["predicted"] != arrays["labels"]).sum()) for arrays in
             map(sample_findings.graph, ("cnn-pool", "cnn-strided", "cnn-pool-unpadded"))]  # fmt: skip
    assert [panel.text for panel in drawn["graph_panels"]] == [
        f"{arm}, seed 0: {34 - many} of 34 nodes right"
        for arm, many in zip(("pool", "strided", "unpadded"), wrong, strict=True)
    ]
    assert [name for _, name in drawn["graph_legend"]] == ["club 0", "club 1", "club 2", "club 3"]
    assert "wrong answer" in page(evidence)
    assert f"- pool, seed 0: {34 - wrong[0]} of 34 nodes right" in text(evidence)


def test_an_unknown_label_is_neither_right_nor_wrong() -> None:
    labels = sample_findings.graph("cnn-pool")["labels"].copy()
    labels[:30] = -1
    (first, *_) = graph_drawing.graphs(changed(sample_findings.with_findings(), "graph", labels=labels))
    assert not first.wrong[:30].any()
    assert first.summary().endswith("of 4 nodes right")


def test_a_large_graph_becomes_a_small_image() -> None:
    evidence = changed(sample_findings.with_findings(), "graph", **sample_findings.graph("cnn-pool", 2708, 7))
    panels = graph_drawing.figures(evidence)["graph_panels"]
    assert all(panel.address.startswith("data:image/png;base64,") and not panel.svg for panel in panels)
    assert sum(panel.cost for panel in panels) <= graph_drawing.BUDGET
    assert 'alt="Graph of pool, seed 0:' in page(evidence)


@pytest.mark.parametrize("nodes", [1, 2])
def test_tiny_graphs_are_drawn(nodes: int) -> None:
    tiny = sample_findings.graph("cnn-pool", nodes, 20) | {"edges": np.zeros((0, 2), np.int64)}
    evidence = changed(sample_findings.with_findings(), "graph", **tiny)
    assert graph_drawing.figures(evidence)["graph_panels"][0].svg.startswith("<svg")


def test_what_does_not_fit_together_is_left_out() -> None:
    for change in (
        {"positions": np.zeros((0, 2))},
        {"positions": np.full((34, 2), np.nan)},
        {"edges": np.array([[0, 34]])},
        {"predicted": np.zeros(33, np.int64)},
        {"labels": None},
    ):
        evidence = changed(sample_findings.with_findings(), "graph", **change)
        assert graph_drawing.graphs(evidence) == []
        assert graph_drawing.figures(evidence)["graph_panels"] == []


def test_only_as_many_drawings_as_fit_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_drawing, "BUDGET", 1)
    assert graph_drawing.figures(sample_findings.with_findings())["graph_left"] == "Drawn: 1 of 3 arms."
