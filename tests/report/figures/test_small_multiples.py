"""Many arms: a panel each, with the same axes; a few share one panel."""

from __future__ import annotations

import re

from tiebreak.report.evidence import Point
from tiebreak.report.figures import drawing, main_figures
from tiebreak.report.figures.small_multiples import MOST_TOGETHER


def curves(arms: int) -> list[main_figures.Curve]:
    return [
        main_figures.Curve(
            arm=f"arm-{index}",
            index=index,
            points=[Point(x=x, mean=0.5 + 0.01 * x, low=0.4, high=0.7, n=3) for x in range(1, 6)],
        )
        for index in range(arms)
    ]


def titles(svg: str) -> list[str]:
    return re.findall(r">(arm-\d)<", svg)


def test_seven_arms_have_a_panel_each_and_four_share_one() -> None:
    svg = main_figures.learning_curves(curves(7), name="many", quantity="validation accuracy")
    assert titles(svg) == [f"arm-{index}" for index in range(7)]
    for index in range(7):
        assert svg.count(drawing.colour(index)) >= 2  # a band and a line
    few = main_figures.learning_curves(curves(MOST_TOGETHER), name="few", quantity="validation accuracy")
    assert titles(few) == []


def test_a_long_name_is_cut_and_the_label_says_every_score() -> None:
    many = [*curves(6)[:-1], main_figures.Curve(arm="x" * 80, index=5, points=curves(1)[0].points)]
    svg = main_figures.learning_curves(many, name="long", quantity="loss")
    assert "x" * 80 not in re.sub(r'aria-label="[^"]*"', "", svg)
    assert svg.count("0.550") == 6
