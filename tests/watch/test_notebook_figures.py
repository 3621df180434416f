"""The charts of a notebook: well-formed SVG of what there is, empty where there is nothing."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.watch.notebook_figures import curve_figure, interval_figure, ticks

NUMBERS = st.floats(-1e6, 1e6)


def comparison(path: list[dict[str, Any]], label: str = "pool vs strided") -> dict[str, Any]:
    return {"label": label, "margin": 0.01, "path": path}


def curve(arm: str, mean: list[float]) -> dict[str, Any]:
    low, high = ([value + change for value in mean] for change in (-0.1, 0.1))
    return {"arm": arm, "epochs": list(range(1, len(mean) + 1)), "mean": mean, "low": low, "high": high}


@given(st.lists(st.tuples(NUMBERS, st.floats(0, 1e3)), min_size=1, max_size=8))
def test_an_interval_is_drawn_whatever_its_numbers(points: list[tuple[float, float]]) -> None:
    path = [
        {"n": n, "difference": middle, "low": middle - half, "high": middle + half}
        for n, (middle, half) in enumerate(points, start=2)
    ]
    svg = ElementTree.fromstring(interval_figure(comparison(path)))
    assert "pool vs strided" in svg.attrib["aria-label"]
    assert "nan" not in ElementTree.tostring(svg, encoding="unicode")


def test_nothing_is_drawn_of_nothing() -> None:
    assert interval_figure(comparison([])) == ""
    assert interval_figure(comparison([{"n": 1, "difference": 0.1, "low": None, "high": None}])) == ""
    assert curve_figure([curve("pool", [])], {"pool": 0}, "loss") == ""


def test_a_name_stays_a_name() -> None:
    path = [{"n": 2, "difference": 0.1, "low": 0.0, "high": 0.2}]
    assert "<script" not in interval_figure(comparison(path, "<script>alert(1)</script>"))


@pytest.mark.parametrize(("arms", "bands"), [(1, 1), (4, 4), (5, 0)])
def test_bands_are_drawn_while_they_are_few(arms: int, bands: int) -> None:
    names = [f"arm-{number}" for number in range(arms)]
    places = {name: place for place, name in enumerate(names)}
    svg = curve_figure([curve(name, [0.5, 0.7, 0.8]) for name in names], places, "accuracy")
    assert svg.count("fill-opacity") == bands
    assert svg.count("stroke-linejoin") == arms


@given(NUMBERS, st.floats(1e-6, 1e6), st.integers(2, 8))
def test_ticks_lie_between_the_ends_and_are_few(low: float, size: float, most: int) -> None:
    found = ticks(low, low + size, most)
    assert len(found) <= most + 2
    assert all(low - 0.01 * size <= value <= low + 1.01 * size for value, _ in found)
