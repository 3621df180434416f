"""What the better arm costs, in words: training time alone, parameters, work and memory, beside the score."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.text import listed, rounded
from tiebreak.verdict.model import ArmResult, ComparisonResult
from tiebreak.verdict.sentences import four_decimals

NEAR = 0.25  # where arms were timed alone but not in turns: less is not told from other work on the machine
DIGITS = 3  # of times: with two, 1.9 against 1.4 ms would not look like 32 %
READABLE = 100_000  # larger numbers that hardly differ are told by how much
WORK = "work for an example"
NOT_TIMED = "training time was not measured alone"


def cost_sentence(comparisons: Sequence[ComparisonResult], arms: Sequence[ArmResult]) -> str:
    """The costs of the primary comparison's arms, the better one first; empty where it does not compare two arms."""
    primary = [item for item in comparisons if item.primary]
    by_name = {arm.name: arm for arm in arms}
    if len(primary) != 1 or primary[0].kind != "pair":
        return ""
    item = primary[0]
    turned = item.verdict == "b"
    first, second = (item.b, item.a) if turned else (item.a, item.b)
    if first not in by_name or second not in by_name:
        return ""
    a, b = by_name[first], by_name[second]
    amounts = (
        _amount(a.parameters, b.parameters, "parameters"),
        _amount(a.flops, b.flops, WORK),
        _memory(a.memory_bytes, b.memory_bytes),
    )
    known, time = [each for each in amounts if each], _time(a, b, _ratio(item, turned=turned))
    if not known and None in (a.step_ms, b.step_ms):
        return ""
    if gain := _gain(item):
        return f"{gain} {time}{f', with {listed(known)}' if known else ''}."
    return f"Cost of {a.name} against {b.name}: {listed([time, *known])}."


def _gain(item: ComparisonResult) -> str:
    """What the better arm gains, before what it costs; empty where none is better or its time was not compared."""
    if item.verdict not in ("a", "b") or item.difference is None or item.time_ratio is None:
        return ""
    better, worse = (item.a, item.b) if item.verdict == "a" else (item.b, item.a)
    ends = [abs(end) for end in (item.low, item.high) if end is not None]
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    interval = f" ({_written(low) if low else 'above 0'} to {_written(high)})" if ends else ""
    where = " on this test set" if item.on_this_test_set else ""
    return f"{better} is better than {worse}{where} by {_written(abs(item.difference))}{interval} and"


def _written(value: float) -> str:
    return four_decimals(value).removeprefix("+")


def _ratio(item: ComparisonResult, *, turned: bool) -> tuple[float, float, float] | None:
    """Training time of the arm that comes first over that of the other, with its interval."""
    if item.time_ratio is None or item.time_low is None or item.time_high is None:
        return None
    if turned:
        return 1 / item.time_ratio, 1 / item.time_high, 1 / item.time_low
    return item.time_ratio, item.time_low, item.time_high


def _time(a: ArmResult, b: ArmResult, ratio: tuple[float, float, float] | None) -> str:
    if ratio is not None:
        return _timed(ratio, _alone(a, b, ratio[0]))
    if not a.step_ms or not b.step_ms:
        return NOT_TIMED
    if a.step_ms == b.step_ms:  # the arms share their runs' steps
        many = _epochs(a, b)
        if many[0] == many[1]:
            return "the same training time"
        return f"{_slower(many[0] / many[1])} ({_pair(*many)} epochs of the same steps)"
    times = f"a training step alone, not timed in turns: {_pair(a.step_ms, b.step_ms)} ms"
    if abs(a.step_ms / b.step_ms - 1) < NEAR:
        return f"about as fast ({times})"
    return f"{_slower(a.step_ms / b.step_ms)} ({times})"


def _epochs(a: ArmResult, b: ArmResult) -> tuple[float, float]:
    """Epochs of both arms; 1 and 1 where they are the same. Differences are from the study's first arm."""
    found = [next((each for each in arm.differences or () if each.name == "epochs"), None) for arm in (a, b)]
    first = next((each.first for each in found if each is not None), 1)
    many = [first if each is None else each.own for each in found]
    numbers = [each for each in many if isinstance(each, int | float)]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (1, 1)


def _timed(ratio: tuple[float, float, float], alone: str) -> str:
    """The same with the interval of the ratio; where that holds 1, nothing is faster."""
    middle, low, high = ratio
    if low <= 1 <= high:
        return f"as fast as can be told (timed in turns, {_slower(low)} to {_slower(high)}; {alone})"
    ends = [_slower(end).rpartition(" ")[0] for end in sorted((low, high), key=lambda end: abs(end - 1))]
    start = ends[0].removesuffix(" %" if ends[1].endswith(" %") else " times")
    return f"{_slower(middle)} (timed in turns, {start} to {ends[1]}; {alone})"


def _alone(a: ArmResult, b: ArmResult, ratio: float) -> str:
    """What the ratio is of: the time of a step, or of the whole training where the numbers of steps differ.

    Of the second arm only: the ratio is the median over rounds of ratios, which that of two medians need not be.
    """
    if a.step_ms and b.step_ms and abs(a.step_ms / b.step_ms / ratio - 1) < NEAR:
        return f"a training step of {b.name} alone takes {rounded(b.step_ms, DIGITS)} ms"
    return f"a run of {b.name} alone trains {rounded(b.solo_seconds or 0, DIGITS)} s"


def _pair(a: float, b: float) -> str:
    return f"{rounded(a, DIGITS)} against {rounded(b, DIGITS)}"


def _slower(ratio: float) -> str:
    if ratio > 2:
        return f"{rounded(ratio)} times slower"
    if ratio < 0.5:
        return f"{rounded(1 / ratio)} times faster"
    return f"{abs(ratio - 1):.0%} {'slower' if ratio >= 1 else 'faster'}".replace("%", " %")


def _memory(a: int | None, b: int | None) -> str:
    if not a or not b:
        return ""
    ratio = rounded(a / b)
    if ratio == "1":
        return "the same memory" if round(a / b, 2) == 1 else "about the same memory"
    return f"{ratio} times the memory"


def _amount(a: int | None, b: int | None, what: str) -> str:
    if not a or not b:
        return ""
    if a == b:
        return f"the same {what}"
    if (ratio := rounded(a / b)) != "1":
        return f"{ratio} times the {what}"
    more = f"{rounded(100 * abs(a / b - 1))} % {'more' if a > b else 'less' if what == WORK else 'fewer'} {what}"
    return f"{a:,} against {b:,} {what}" if max(a, b) < READABLE else more
