"""A part at one size after the other: multiply-adds by formula and counted, time, memory."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tiebreak.errors import TiebreakError
from tiebreak.system import free_memory
from tiebreak.theory.part_types import FormulaPart, Part

NUMBER = 4  # bytes of one
MOST_SECONDS = 2.0  # of one call, in a default range
SINGLE_STEPS = 8  # a range of at most this many sizes goes up by one, a longer one by doubling

Report = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Which variable takes which values."""

    variable: str
    points: Sequence[int]
    explicit: bool  # the user gave the range: it is measured in full, however long that takes


@dataclass(frozen=True, kw_only=True)
class Point:
    """A part at one size: multiply-adds by its formula, what was counted, time, the most bytes held at once."""

    x: int
    formula: int | None = None  # multiply-adds
    counted: Mapping[str, int | None] = field(default_factory=dict)  # quantity -> count; None: unknown
    seconds: float | None = None
    bytes: int | None = None

    @property
    def multiply_adds(self) -> int | None:
        """Counted, else by formula; None when unknown."""
        return self.counted.get("multiply_adds", self.formula)


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
    """`--set D=64`, any number of times; each variable must belong to at least one of the parts."""
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
    """`--vary L=256..4096` or `--vary L`; without it, the default variable and range of the first part."""
    if text is None:
        variable, low, high, explicit = parts[0].vary, *parts[0].span, False
    else:
        found = re.fullmatch(r"\s*(\w+)\s*(?:=\s*([\d_,]+)\s*\.\.\s*([\d_,]+)\s*)?", text)
        if not found:
            raise TiebreakError(f"--vary {text}: should be a variable and a range, as in --vary L=256..4096")
        variable, explicit = found[1], found[2] is not None
        parts[0].check(variable)
        if explicit:
            low, high = (int(re.sub("[_,]", "", end)) for end in found.group(2, 3))
        else:
            start = parts[0].variables[variable].default
            low, high = parts[0].span if variable == parts[0].vary else (start, 16 * start)
    if low < 1:
        raise TiebreakError(f"--vary {text}: the range should begin at 1 or more, as the axis is logarithmic")
    if low >= high:
        raise TiebreakError(f"--vary {text}: the range should go up, not from {low:,} to {high:,}")
    for part in parts:
        part.check(variable)
        part.sizes({variable: low})
    if variable in given:
        raise TiebreakError(f"{variable} is both varied and set; leave out --vary or --set")
    return Sweep(variable=variable, points=points_between(low, high), explicit=explicit)


def by_formula(part: FormulaPart, sizes: Mapping[str, int], sweep: Sweep) -> list[Point]:
    """The points without measuring anything."""
    return [Point(x=x, formula=part.value("multiply_adds", {**sizes, sweep.variable: x})) for x in sweep.points]


def measure(part: Part, sizes: Mapping[str, int], sweep: Sweep, report: Report) -> tuple[list[Point], str | None]:
    """The points, and why some are missing. Only a range that the user gave is measured however long it takes."""
    free, points = free_bytes(), list[Point]()
    for number, x in enumerate(sweep.points):
        now = {**sizes, sweep.variable: x}
        expected, needed = _expected_seconds(part, now, points, x), _expected_bytes(part, now, points, x)
        may_stop = points and not (sweep.explicit and isinstance(part, FormulaPart))  # else `check_fits` has said it
        if may_stop and (reason := _too_much(expected if number > 1 and not sweep.explicit else 0.0, needed, free)):
            return points, f"{part.name} ends at {sweep.variable} = {points[-1].x:,}: {reason}"
        about = f", about {expected:.1f} s a call" if expected > 0.1 else ""
        report(f"{part.name} at {sweep.variable} = {x:,} ({number + 1} of {len(sweep.points)}{about})")
        points.append(_measured(part, now, x))
    return points, None


def _too_much(seconds: float, needed: float, free: int) -> str | None:
    if seconds > MOST_SECONDS:
        return f"the next call would take about {seconds:.0f} s"
    return f"the next needs {needed / 1e9:,.1f} GB" if needed > free else None


def _expected_seconds(part: Part, sizes: Mapping[str, int], points: Sequence[Point], x: int) -> float:
    """Of the next call: in proportion to the multiply-adds where there is a formula, else as the last points grew."""
    if not points:
        return 0.0
    last = points[-1]
    if isinstance(part, FormulaPart) and last.formula:
        return (last.seconds or 0.0) * part.value("multiply_adds", sizes) / last.formula
    return _extrapolated(points, [point.seconds or 0.0 for point in points], x)


def _expected_bytes(part: Part, sizes: Mapping[str, int], points: Sequence[Point], x: int) -> float:
    if isinstance(part, FormulaPart):
        return needed_bytes(part.value("activations", sizes), part.value("parameters", sizes))
    needed = [needed_bytes(p.counted["activations"] or 0, p.counted["parameters"] or 0) for p in points]
    return _extrapolated(points, needed, x) if points else 0.0


def _extrapolated(points: Sequence[Point], values: Sequence[float], x: int) -> float:
    """The power law through the last two points, at x; it never falls. One point: its value."""
    if len(points) < 2 or not values[-2] or not values[-1]:
        return values[-1]
    before, last = points[-2].x, points[-1].x
    exponent = max(0.0, math.log(values[-1] / values[-2]) / math.log(last / before))
    return float(values[-1] * (x / last) ** exponent)


def _measured(part: Part, sizes: Mapping[str, int], x: int) -> Point:
    import torch

    from tiebreak.cost import measure
    from tiebreak.theory import workloads

    counts: list[measure.Count] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that other load on the machine matters least
    try:
        workload = workloads.build(part.name, sizes)
        with torch.no_grad():
            held = measure.peak_bytes(lambda: counts.append(measure.count(workload.call)))
            taken = measure.seconds(workload.call, least=5 if (counts[0].multiply_adds or 0) < 1e9 else 3)
        counted = {"parameters": measure.parameters(workload.network), "multiply_adds": counts[0].multiply_adds}
        if not isinstance(part, FormulaPart):  # elsewhere it is counted at one size and compared with the formula
            counted["activations"] = workloads.kept_numbers(workload)
    finally:
        torch.set_num_threads(threads)
    formula = part.value("multiply_adds", sizes) if isinstance(part, FormulaPart) else None
    return Point(x=x, formula=formula, counted=counted, seconds=taken, bytes=held)


def needed_bytes(activations: int, parameters: int) -> int:
    """About what a call needs with its inputs: twice what is kept, to allow for temporary results."""
    return NUMBER * (2 * activations + parameters)


def free_bytes() -> int:
    """Memory that this machine has left."""
    return free_memory()


def check_fits(part: Part, sizes: Mapping[str, int], sweep: Sweep) -> None:
    """Refuse a range that the user gave and that does not fit in memory, before any work is done."""
    if not isinstance(part, FormulaPart):  # `measure` stops in time
        return
    free = free_bytes()
    for x in sweep.points if sweep.explicit else ():
        now = {**sizes, sweep.variable: x}
        needed = needed_bytes(part.value("activations", now), part.value("parameters", now))
        if needed > free:
            raise TiebreakError(
                f"{part.name} at {sweep.variable} = {x:,} needs about {needed / 1e9:,.1f} GB and {free / 1e9:,.1f} GB "
                "are free; choose a smaller range, or --no-measure for the formulas alone"
            )
