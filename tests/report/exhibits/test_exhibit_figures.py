from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from support import sample_exhibits
from tiebreak.report.exhibits import confusion, exhibit_figures, prepared
from tiebreak.report.exhibits.confusion import Confusion
from tiebreak.report.figures import drawing


def matrix(classes: int, names: list[str] | None = None) -> Confusion:
    shares = np.eye(classes) * 0.9 + np.roll(np.eye(classes), 1, axis=1) * 0.1
    names = names or [f"class {number}" for number in range(classes)]
    return Confusion(arm="pool", index=0, names=names, shares=shares, seeds=3, examples=50)


def test_a_panel_for_each_move_on_one_scale() -> None:
    moves = prepared.robustness(sample_exhibits.with_exhibits())
    within = exhibit_figures.limits(moves)
    lows = [point.low for move in moves for line in move.lines for point in line.points]
    assert within[0] < min(lows)
    for move in moves:
        svg = exhibit_figures.robustness_panel(move, within=within)
        root = ElementTree.fromstring(svg)
        assert move.quantity in root.get("aria-label", "")
        assert "pool: 0." in root.get("aria-label", "")
        assert all(drawing.colour(index) in svg for index in range(3))
        assert min(int(size) for size in re.findall(r"font-size: (\d+)px", svg)) >= 11
        assert len(svg) < 20_000


def test_amounts_are_the_ticks() -> None:
    scale = prepared.robustness(sample_exhibits.with_exhibits())[2]
    svg = exhibit_figures.robustness_panel(scale, within=(0, 1))
    assert re.findall(r">([\d.]+)</text>", svg)[:5] == ["0.6", "0.8", "1", "1.2", "1.4"]


def test_one_amount_of_one_seed_is_still_a_panel() -> None:
    move = prepared.robustness(sample_exhibits.with_exhibits())[0]
    point = dataclasses.replace(move.lines[0].points[0], n=1, low=0.5, mean=0.5, high=0.5)
    alone = dataclasses.replace(move, lines=[dataclasses.replace(move.lines[0], points=[point])])
    assert "0.500 at" in exhibit_figures.robustness_panel(alone, within=exhibit_figures.limits([alone]))


@pytest.mark.parametrize(
    ("classes", "numbers", "named"), [(2, True, True), (10, True, True), (20, False, True), (60, False, False)]
)
def test_numbers_and_names_stand_where_they_fit(classes: int, numbers: bool, named: bool) -> None:
    svg = exhibit_figures.confusion_matrix(matrix(classes), name="c", largest=0.1)
    assert (">90</text>" in svg) == numbers
    assert (">class 1</text>" in svg) == named
    assert "data:image/png;base64," in svg
    assert len(svg) < 40_000
    assert "class 0 classified as class 1 (10 % of its images)" in ElementTree.fromstring(svg).get("aria-label", "")


def test_long_and_hostile_names_are_cut_and_escaped() -> None:
    names = ["<script>alert(1)</script> one", "<script>alert(1)</script> two"]
    svg = exhibit_figures.confusion_matrix(matrix(2, names), name="c", largest=0.1)
    assert "<script" not in svg
    assert "t&gt; one</text>" in svg
    assert "t&gt; two</text>" in svg


def test_shades_tell_right_from_wrong_and_more_from_less() -> None:
    shades = exhibit_figures._shades(np.array([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]]), 0.2)
    assert tuple(np.round(255 * shades[0, 0, :3])) == exhibit_figures.RIGHT
    assert tuple(np.round(255 * shades[0, 1, :3])) == exhibit_figures.WRONG
    assert shades[0, 1, 3] > shades[1, 0, 3] > 0
    assert shades[0, 2, 3] == 0
    assert shades[..., 3].max() <= 0.7  # text stays legible on it
    assert not exhibit_figures._shades(np.eye(3), 0.0)[0, 1, 3]


def test_the_same_matrix_draws_the_same_bytes() -> None:
    item = confusion.confusions(sample_exhibits.with_exhibits())[0]
    first, second = (exhibit_figures.confusion_matrix(item, name="c", largest=0.1) for _ in range(2))
    assert first == second
