from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.errors import TiebreakError
from tiebreak.theory import sweep
from tiebreak.theory.parts import PARTS, find_part
from tiebreak.theory.sweep import Point, Sweep

ATTENTION, TAYLOR = PARTS["attention"], PARTS["taylor"]


def test_ranges() -> None:
    assert sweep.parse_vary("L=8..64", [ATTENTION], {}) == Sweep(variable="L", points=[8, 16, 32, 64], explicit=True)
    assert sweep.parse_vary(" D = 1_0 .. 1,000", [ATTENTION], {}).points == [10, 20, 40, 80, 160, 320, 640, 1000]
    assert sweep.parse_vary("K=1..3", [TAYLOR], {}).points == [1, 2, 3]


def test_without_a_range_the_part_knows_one() -> None:
    for text in (None, "L"):
        found = sweep.parse_vary(text, [ATTENTION], {})
        assert (found.variable, found.points[0], found.points[-1], found.explicit) == ("L", 256, 16384, False)
    assert sweep.parse_vary("D", [ATTENTION], {}).points == [64, 128, 256, 512, 1024]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("L=256", "--vary .*range"),
        ("L=256-512", "--vary .*range"),
        ("L=a..b", "--vary .*range"),
        ("=1..2", "--vary .*range"),
        ("L=512..256", "go up"),
        ("L=8..8", "go up"),
        ("L=0..8", "1 or more"),
        ("X=1..8", r"'X'.*L \(length\), D"),
        ("D=1..8", "--vary or --set"),
    ],
)
def test_ranges_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(TiebreakError, match=message):
        sweep.parse_vary(text, [ATTENTION], {"D": 4})


def test_both_parts_must_have_the_variable() -> None:
    with pytest.raises(TiebreakError, match=r"attention .*'K'"):
        sweep.parse_vary("K=1..3", [TAYLOR, ATTENTION], {})


def test_values_that_are_set() -> None:
    assert sweep.parse_given(["D=16", "V = 1_024"], [ATTENTION, TAYLOR]) == {"D": 16, "V": 1024}
    for text, message in (
        ("D", "whole number"),
        ("D=1.5", "whole number"),
        ("X=3", "no variable 'X'"),
        ("D=0", "small"),
    ):
        with pytest.raises(TiebreakError, match=message):
            sweep.parse_given([text], [ATTENTION, TAYLOR])


def test_a_range_that_does_not_fit_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "free_bytes", lambda: 10**9)
    part, whole = PARTS["attention-naive"], Sweep(variable="L", points=[64, 65536], explicit=True)
    with pytest.raises(TiebreakError, match=r"L = 65,536 .*34\.5 GB.*1\.0 GB.*--no-measure"):
        sweep.check_fits(part, part.sizes(), whole)
    sweep.check_fits(part, part.sizes(), dataclasses.replace(whole, explicit=False))


def test_a_default_range_ends_where_it_gets_long_or_large(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    whole = Sweep(variable="L", points=[8, 16, 32], explicit=False)
    sizes = ATTENTION.sizes({"D": 4})
    points, ended = sweep.measure(ATTENTION, sizes, whole, said.append)
    assert [point.x for point in points] == [8, 16, 32]
    assert ended is None
    assert "attention at L = 8" in said[0]
    assert all(point.counted["multiply_adds"] == point.formula and point.seconds and point.bytes for point in points)
    monkeypatch.setattr(sweep, "MOST_SECONDS", 0.0)
    points, ended = sweep.measure(ATTENTION, sizes, whole, said.append)
    assert len(points) == 2
    assert ended is not None
    assert "L = 16" in ended
    monkeypatch.setattr(sweep, "free_bytes", lambda: 0)
    points, ended = sweep.measure(ATTENTION, sizes, whole, said.append)
    assert len(points) == 1
    assert ended is not None
    assert "L = 8" in ended


def test_free_memory_is_known() -> None:
    assert sweep.free_bytes() > 10**7


def test_a_part_without_a_formula_is_counted_at_every_point_and_stops_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    part, whole = find_part("mlp-graph"), Sweep(variable="E", points=[8, 16, 32], explicit=True)
    sizes = part.sizes({"n": 20, "F": 5, "Z": 30})
    points, ended = sweep.measure(part, sizes, whole, lambda line: None)
    assert ended is None
    assert [point.x for point in points] == [8, 16, 32]
    for point in points:
        assert point.formula is None
        assert point.multiply_adds == point.counted["multiply_adds"]
        assert all(point.counted[name] for name in ("parameters", "multiply_adds", "activations"))
    monkeypatch.setattr(sweep, "free_bytes", lambda: 0)
    sweep.check_fits(part, sizes, whole)  # its memory is not known before
    points, ended = sweep.measure(part, sizes, whole, lambda line: None)
    assert len(points) == 1
    assert ended is not None
    assert "GB" in ended


@given(st.floats(0, 3), st.floats(0.1, 10))
def test_what_comes_next_is_expected_by_the_power_law_of_the_last_points(exponent: float, factor: float) -> None:
    points = [Point(x=x) for x in (4, 8)]
    values = [factor * x**exponent for x in (4, 8)]
    assert sweep._extrapolated(points, values, 16) == pytest.approx(factor * 16**exponent)
    assert sweep._extrapolated(points, [2.0, 1.0], 16) == 1.0, "it never falls"
