from __future__ import annotations

import dataclasses
import re
from xml.etree import ElementTree

import pytest

from support import sample_report
from tiebreak.report.evidence import Evidence, Point, Sides
from tiebreak.report.figures import main_figures
from tiebreak.report.page import tables, view

LARGEST_FIGURE = 60_000
KINDS = ("narrow", "wide", "pairs")


def _all(evidence: Evidence) -> dict[str, str]:
    found = view.figures(evidence)
    mains = {
        f"{key} {number}": getattr(main, key) for number, main in enumerate(found["main_figures"]) for key in KINDS
    }
    panels = {f"reported {panel.quantity}": panel.svg for panel in found["reported_panels"]}
    curves = {f"curves {number}": svg for number, svg in enumerate(found["curve_panels"])}
    return {**mains, **panels, **curves, "settings": found["setting_grid"]}


def test_every_figure_is_small_labelled_and_takes_its_colours_from_the_page() -> None:
    drawn = _all(sample_report.with_reported())
    assert len(drawn) == 10
    for svg in drawn.values():
        root = ElementTree.fromstring(svg)
        assert len(svg) < LARGEST_FIGURE
        assert (root.tag, root.get("role")) == ("svg", "img")
        assert root.get("aria-label")
        assert "currentColor" in svg
        assert not re.search(r"https?://|<style|<metadata|xmlns|#0[1-4]0[1-4]0[1-4]", svg)


def test_text_is_at_least_11_pixels() -> None:
    for svg in _all(sample_report.with_reported()).values():
        sizes = [int(size) for size in re.findall(r"font-size: (\d+)px", svg)]
        assert sizes
        assert min(sizes) >= 11


def test_the_same_numbers_draw_the_same_bytes() -> None:
    assert _all(sample_report.partial()) == _all(sample_report.partial())


def test_references_are_unique_on_the_page_and_resolve() -> None:
    drawn = "".join(_all(sample_report.with_reported()).values())
    names = re.findall(r'id="([^"]+)"', drawn)
    assert len(names) == len(set(names))
    assert set(re.findall(r'href="#([^"]+)"', drawn) + re.findall(r"url\(#([^)]+)\)", drawn)) <= set(names)


def test_without_data_there_is_no_figure() -> None:
    assert set(_all(sample_report.empty()).values()) == {""}


@pytest.mark.parametrize(("goal", "left"), [("max", "strided"), ("min", "pool")])
def test_the_better_side_depends_on_the_goal(goal: str, left: str) -> None:
    item = sample_report.complete().verdict.primary
    svg = main_figures.difference_bar(item, name="d", goal="max" if goal == "max" else "min")
    assert f"← {left} better" in svg


@pytest.mark.parametrize(("goal", "left"), [("max", "smaller"), ("min", "larger")])
def test_an_interaction_has_a_larger_advantage_not_a_better_side(goal: str, left: str) -> None:
    item = sample_report.complete().verdict.comparisons[-1]
    wide = main_figures.difference_bar(item, name="d", goal="max" if goal == "max" else "min", width=main_figures.WIDE)
    assert f"← advantage {left}" in wide
    assert "difference in accuracy: (pool-moved − strided-moved) − (pool − strided)" in wide
    narrow = main_figures.difference_bar(item, name="d", goal="max")
    assert ">(pool-moved − strided-moved)<" in narrow
    assert ">− (pool − strided)<" in narrow
    assert "better" not in narrow + wide


def test_a_difference_of_one_seed_has_no_interval_and_still_a_figure() -> None:
    item = sample_report.complete().verdict.primary.model_copy(update={"low": None, "high": None})
    assert "+0.023" in main_figures.difference_bar(item, name="d", goal="max", by_seed=[0.02])


def test_text_from_data_is_escaped_and_never_read_as_a_formula() -> None:
    names = Sides(names=("<script>$x_1$", "b\x00\x1b[31m"), places=(0, 1), scores=({0: 0.5}, {0: 0.4}))
    svg = main_figures.paired_seeds(names, name="p", quantity='"><b>')
    assert "<script>" not in svg
    assert "&lt;script&gt;$x_1$" in svg
    assert "\x1b" not in svg
    assert ElementTree.fromstring(svg).get("aria-label", "").startswith('"><b> by seed')


def test_many_seeds_and_settings_stay_small() -> None:
    pairs = {seed: (0.5 + seed / 5000, 0.5 - seed / 5000) for seed in range(1000)}
    scores = tuple({seed: pair[side] for seed, pair in pairs.items()} for side in (0, 1))
    sides = Sides(names=("a", "b"), places=(0, 1), scores=(scores[0], scores[1]))
    svg = main_figures.paired_seeds(sides, name="p", quantity="accuracy")
    assert len(svg) < LARGEST_FIGURE
    row = tables.setting_rows(sample_report.complete())[0]
    rows = [dataclasses.replace(row, setting=f"lr={number}", scores=(0.5, 0.6) * 50) for number in range(60)]
    assert len(main_figures.setting_grid(rows, quantity="accuracy")) < LARGEST_FIGURE
    curve = [Point(x=epoch, mean=1 / epoch, low=0.9 / epoch, high=1.1 / epoch, n=10) for epoch in range(1, 501)]
    curves = [main_figures.Curve(arm=str(index), index=index, points=curve) for index in range(4)]
    assert len(main_figures.learning_curves(curves, name="long", quantity="loss")) < LARGEST_FIGURE


def test_the_axis_of_seeds_ends_where_the_metric_ends() -> None:
    same = dict.fromkeys(range(3), 1.0)
    sides = Sides(names=("a", "b"), places=(0, 1), scores=(same, same), limits=((0.0, 1.0), (0.0, 1.0)))
    svg = main_figures.paired_seeds(sides, name="p", quantity="accuracy")
    assert ">1.00<" in svg
    assert ">1.02<" not in svg


def test_an_interaction_has_every_figure() -> None:
    question = {"kind": "interaction", "name": "four", "a": "pool", "b": "strided", "c": "moved", "d": "unpadded"}
    assert all(_all(sample_report.with_question(question)).values())


def _curve(index: int, epochs: int) -> main_figures.Curve:
    points = [Point(x=x + 1, mean=0.9 + 0.01 * index, low=0.8, high=1.0, n=3) for x in range(epochs)]
    return main_figures.Curve(arm=f"arm-{index}", index=index, points=points)


def test_one_epoch_makes_no_curve() -> None:
    assert main_figures.learning_curves([_curve(0, 1), _curve(1, 1)], name="c", quantity="validation accuracy") == ""
    evidence = sample_report.complete()
    assert view._no_curves([_curve(0, 1)]).startswith("One epoch")
    assert view.figures(evidence)["curves_missing"] == ""


def test_the_panels_of_one_figure_have_one_size() -> None:
    panels = view.figures(sample_report.complete())["curve_panels"]
    assert len({re.search(r'viewBox="([^"]+)"', svg)[1] for svg in panels}) == 1  # type: ignore[index]


def test_an_axis_ends_where_the_metric_ends() -> None:
    low, high = main_figures.readable_window([Point(x=1, mean=0.97, low=0.6, high=1.0, n=3),
                                              Point(x=2, mean=0.99, low=0.9, high=1.0, n=3)], (0.0, 1.0))  # fmt: skip
    assert 0.6 < low < 0.97
    assert 1.0 < high < 1.01
