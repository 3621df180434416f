from __future__ import annotations

import dataclasses

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.theory import sweep
from tiebreak.theory.parts import PARTS
from tiebreak.theory.sweep import Sweep

ATTENTION, TAYLOR = PARTS["attention"], PARTS["taylor"]


def test_ranges() -> None:
    assert sweep.parse_vary("L=8..64", [ATTENTION], {}) == Sweep(variable="L", points=[8, 16, 32, 64], asked=True)
    assert sweep.parse_vary(" D = 1_0 .. 1,000", [ATTENTION], {}).points == [10, 20, 40, 80, 160, 320, 640, 1000]
    assert sweep.parse_vary("K=1..3", [TAYLOR], {}).points == [1, 2, 3]


def test_without_a_range_the_part_knows_one() -> None:
    for text in (None, "L"):
        found = sweep.parse_vary(text, [ATTENTION], {})
        assert (found.variable, found.points[0], found.points[-1], found.asked) == ("L", 256, 16384, False)
    assert sweep.parse_vary("D", [ATTENTION], {}).points == [64, 128, 256, 512, 1024]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("L=256", "a variable and a range, as in"),
        ("L=256-512", "a variable and a range, as in"),
        ("L=a..b", "a variable and a range, as in"),
        ("=1..2", "a variable and a range, as in"),
        ("L=512..256", "the range should go up"),
        ("L=8..8", "the range should go up"),
        ("L=0..8", "should begin at 1"),
        ("X=1..8", r"no variable 'X'; it has L \(length\), D"),
        ("D=1..8", "varied and set at once"),
    ],
)
def test_ranges_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(TiebreakError, match=message):
        sweep.parse_vary(text, [ATTENTION], {"D": 4})


def test_both_parts_must_have_the_variable() -> None:
    with pytest.raises(TiebreakError, match="attention has no variable 'K'"):
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
    part, asked = PARTS["attention-naive"], Sweep(variable="L", points=[64, 65536], asked=True)
    with pytest.raises(TiebreakError, match=r"L = 65,536 needs about 34.5 GB and 1.0 GB are free; choose a smaller"):
        sweep.check_fits(part, part.sizes(), asked)
    sweep.check_fits(part, part.sizes(), dataclasses.replace(asked, asked=False))


def test_a_range_that_nobody_asked_for_ends_where_it_gets_long_or_large(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    whole = Sweep(variable="L", points=[8, 16, 32], asked=False)
    sizes = ATTENTION.sizes({"D": 4})
    points, ended = sweep.measure(ATTENTION, sizes, whole, said.append)
    assert [point.x for point in points] == [8, 16, 32]
    assert ended is None
    assert said[0] == "attention at L = 8 (1 of 3)"
    assert all(point.counted == point.multiply_adds and point.seconds and point.bytes for point in points)
    monkeypatch.setattr(sweep, "MOST_SECONDS", 0.0)
    points, ended = sweep.measure(ATTENTION, sizes, whole, said.append)
    assert len(points) == 2
    assert ended is not None
    assert "ends at L = 16: the next call would take" in ended
    monkeypatch.setattr(sweep, "free_bytes", lambda: 0)
    points, ended = sweep.measure(ATTENTION, sizes, whole, said.append)
    assert len(points) == 1
    assert ended is not None
    assert "ends at L = 8: the next needs" in ended


def test_free_memory_is_known() -> None:
    assert sweep.free_bytes() > 10**7
