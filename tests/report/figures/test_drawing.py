from __future__ import annotations

import dataclasses
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import sample_report
from tiebreak.report.evidence import Point
from tiebreak.report.figures import drawing, main_figures
from tiebreak.report.page import tables


def test_one_colour_and_marker_for_each_arm() -> None:
    looks = [(drawing.colour(index), drawing.marker(index), drawing.swatch(index)) for index in range(30)]
    assert len(set(looks)) == 30
    assert len(drawing.PALETTE) == len(drawing.MARKERS) == len(drawing.SWATCHES)
    curves = main_figures.learning_curves(
        [main_figures.Curve(arm="x", index=3, points=[Point(x=x, mean=0.5, low=0.5, high=0.5, n=1) for x in (1, 2)])],
        name="one",
        quantity="loss",
    )
    assert drawing.colour(3) in curves


def test_letters_that_the_font_lacks_are_left_to_the_browser() -> None:
    rows = tables.reported_rows(sample_report.with_reported())[:1]
    row = dataclasses.replace(rows[0], source="王小明", what="x" * 200)
    svg = main_figures.reported_figures([row], name="r", quantity="accuracy")
    assert "王小明" in svg
    assert "…" in svg


def test_a_sheet_becomes_a_labelled_svg_with_the_colours_of_the_page() -> None:
    with drawing.style():
        figure, axes = drawing.sheet(200, 100, drawing.Margins())
        axes.plot([0, 1], [0, 1], color=drawing.MUTED)
        axes.set_xlabel("a < b")
        svg = drawing.to_svg(figure, name="sheet", label="a < b & c")
    root = ElementTree.fromstring(svg)
    assert root.get("viewBox") == "0 0 200 100"
    assert root.get("aria-label") == "a < b & c"
    assert "var(--muted)" in svg
    assert drawing.MUTED not in svg
    assert all(each.get("id", "sheet-").startswith("sheet-") for each in root.iter())


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(0.01, 0.5))
def test_a_window_holds_all_values_with_room_around_them(values: list[float], room: float) -> None:
    low, high = drawing.window(values, room)
    assert low < high
    assert low <= min(values)
    assert max(values) <= high


@pytest.mark.parametrize(("text", "width", "shown"), [("short", 100, "short"), ("x" * 50, 66, "x" * 9 + "…")])
def test_a_text_is_cut_to_its_room(text: str, width: int, shown: str) -> None:
    assert drawing.fit(text, width) == shown


def test_wide_scripts_need_twice_the_room() -> None:
    assert drawing.letters_room(["王小明"]) == drawing.letters_room(["abcdef"])
    assert drawing.letters_room([]) == 0
