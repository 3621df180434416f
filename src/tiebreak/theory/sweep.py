"""A part measured at one size after the other: what the formula says, what was counted, the clock and the memory."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tiebreak.errors import TiebreakError
from tiebreak.system import free_memory
from tiebreak.theory.parts import Part

NUMBER = 4  # bytes of one
MOST_SECONDS = 2.0  # of one call, in a range that nobody asked for
SINGLE_STEPS = 8  # up to so many sizes, a range goes up by one and not by doubling

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Which variable takes which values."""

    variable: str
    points: Sequence[int]
    asked: bool  # a range that was typed is measured in full


@dataclass(frozen=True, kw_only=True)
class Point:
    """A part at one size: multiply-adds by the formula and counted, time, the most bytes held at once."""

    x: int
    multiply_adds: int
    counted: int | None = None
    seconds: float | None = None
    bytes: int | None = None


def points_between(low: int, high: int) -> list[int]:
    """Sizes from low to high, each twice the one before; a short range in steps of one.

    >>> points_between(256, 4096), points_between(1, 5), points_between(100, 1000)
    ([256, 512, 1024, 2048, 4096], [1, 2, 3, 4, 5], [100, 200, 400, 800, 1000])
    """
    if high - low < SINGLE_STEPS:
        return list(range(low, high + 1))
    points = [low * 2**step for step in range(math.floor(math.log2(high / low)) + 1)]
    return points if points[-1] == high else [*points, high]


def parse_given(texts: Sequence[str], parts: Sequence[Part]) -> dict[str, int]:
    """`--set D=64`, as often as there are variables to set; each belongs to one of the parts at least."""
    given: dict[str, int] = {}
    for text in texts:
        found = re.fullmatch(r"\s*(\w+)\s*=\s*([\d_,]+)\s*", text)
        if not found:
            raise TiebreakError(f"--set {text}: should be a variable and a whole number, as in --set D=64")
        name, value = found[1], int(re.sub("[_,]", "", found[2]))
        if not any(name in part.variables for part in parts):
            parts[0].check(name)
        for part in parts:
            if name in part.variables:
                part.sizes({name: value})
        given[name] = value
    return given


def parse_vary(text: str | None, parts: Sequence[Part], given: Mapping[str, int]) -> Sweep:
    """`--vary L=256..4096` or `--vary L`; nothing: what tells most about the first part."""
    if text is None:
        variable, low, high, asked = parts[0].vary, *parts[0].span, False
    else:
        found = re.fullmatch(r"\s*(\w+)\s*(?:=\s*([\d_,]+)\s*\.\.\s*([\d_,]+)\s*)?", text)
        if not found:
            raise TiebreakError(f"--vary {text}: should be a variable and a range, as in --vary L=256..4096")
        variable, asked = found[1], found[2] is not None
        parts[0].check(variable)
        if asked:
            low, high = (int(re.sub("[_,]", "", end)) for end in found.group(2, 3))
        else:
            start = parts[0].variables[variable].default
            low, high = parts[0].span if variable == parts[0].vary else (start, 16 * start)
    if low < 1:
        raise TiebreakError(f"--vary {text}: the range should begin at 1 or more, for the axis is logarithmic")
    if low >= high:
        raise TiebreakError(f"--vary {text}: the range should go up, and {low:,} to {high:,} does not")
    for part in parts:
        part.check(variable)
        part.sizes({variable: low})
    if variable in given:
        raise TiebreakError(f"{variable} is varied and set at once; leave one of the two out")
    return Sweep(variable=variable, points=points_between(low, high), asked=asked)


def by_formula(part: Part, sizes: Mapping[str, int], sweep: Sweep) -> list[Point]:
    """The points without measuring anything."""
    return [Point(x=x, multiply_adds=part.value("multiply_adds", {**sizes, sweep.variable: x})) for x in sweep.points]


def measure(part: Part, sizes: Mapping[str, int], sweep: Sweep, tell: Tell) -> tuple[list[Point], str | None]:
    """The points, and why some are missing: only a range that was asked for is measured whatever it takes."""
    planned, free, points = by_formula(part, sizes, sweep), free_bytes(), list[Point]()
    for number, point in enumerate(planned):
        where, now = f"{sweep.variable} = {point.x:,}", {**sizes, sweep.variable: point.x}
        last = points[-1] if points else None
        expected = last.seconds * point.multiply_adds / last.multiply_adds if last and last.seconds else 0.0
        if last is not None and not sweep.asked:
            ended = f"{part.name} ends at {sweep.variable} = {last.x:,}: "
            if expected > MOST_SECONDS and number > 1:
                return points, f"{ended}the next call would take about {expected:.0f} s"
            if needed_bytes(part, now) > free:
                return points, f"{ended}the next needs {needed_bytes(part, now) / 1e9:,.1f} GB"
        about = f", about {expected:.1f} s a call" if expected > 0.1 else ""
        tell(f"{part.name} at {where} ({number + 1} of {len(planned)}{about})")
        points.append(_measured(part, now, point))
    return points, None


def _measured(part: Part, sizes: Mapping[str, int], point: Point) -> Point:
    import torch

    from tiebreak.cost import measure
    from tiebreak.theory import workloads

    counts: list[measure.Count] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # what else the machine does then matters least
    try:
        workload = workloads.build(part.name, sizes)
        with torch.no_grad():
            held = measure.peak_bytes(lambda: counts.append(measure.count(workload.call)))
            taken = measure.seconds(workload.call, least=5 if point.multiply_adds < 1e9 else 3)
    finally:
        torch.set_num_threads(threads)
    return Point(
        x=point.x, multiply_adds=point.multiply_adds, counted=counts[0].multiply_adds, seconds=taken, bytes=held
    )


def needed_bytes(part: Part, sizes: Mapping[str, int]) -> int:
    """About what a call needs with its inputs: twice what is kept, for what is there only for a moment."""
    return NUMBER * (2 * part.value("activations", sizes) + part.value("parameters", sizes))


def free_bytes() -> int:
    """Memory that this machine has left."""
    return free_memory()


def check_fits(part: Part, sizes: Mapping[str, int], sweep: Sweep) -> None:
    """Refuse a range that was asked for and does not fit in memory, before any work is done."""
    free = free_bytes()
    for x in sweep.points if sweep.asked else ():
        needed = needed_bytes(part, {**sizes, sweep.variable: x})
        if needed > free:
            raise TiebreakError(
                f"{part.name} at {sweep.variable} = {x:,} needs about {needed / 1e9:,.1f} GB and {free / 1e9:,.1f} GB "
                "are free; choose a smaller range, or --no-measure for the formulas alone"
            )
