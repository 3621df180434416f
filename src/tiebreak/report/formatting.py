"""Numbers and outcomes as a reader sees them: three decimals, signs on differences, plain words. Returns text only."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from tiebreak.text import listed, rounded
from tiebreak.verdict import sentences
from tiebreak.verdict.model import ClaimResult, ComparisonResult
from tiebreak.verdict.sentences import Number

MISSING = "missing"
REPORTS = ("R0", "R1", "R2", "R3", "R4")  # docs/glossary.md says what they are
HINT = (
    "A hint comes from a run below the claim's own protocol (other data or a smaller budget). "
    "It points one way, but it neither confirms nor refutes the claim."
)

MIXED = "Mixed: hints point both ways; the first is of the result that is nearest to the claim's own terms."


def score(value: float | None) -> str:
    """A metric's value: three decimals, fewer where it is large, three significant digits where small.

    >>> score(0.94449), score(163.98), score(0.00002718), score(None)
    ('0.944', '164.0', '2.72e-05', 'missing')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    size = abs(value)
    if sentences.NOISE < size < sentences.SMALL:
        return f"{value:.3g}"
    return f"{value:.{3 if size < 10 else 2 if size < 100 else 1}f}"


def signed(value: float | None) -> str:
    """A difference, always with its sign; two significant digits where three decimals would show zero.

    >>> signed(0.0221), signed(-0.0004), signed(0.000012), signed(0.0)
    ('+0.022', '-0.0004', '+1.2e-05', '0.000')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if abs(value) <= sentences.NOISE:
        return "0.000"
    if abs(value) < sentences.SMALL:
        return f"{value:+.2g}"
    return ("+" if value > 0 else "-") + score(abs(value))


def interval(low: float | None, high: float | None) -> str:
    """Two ends of an interval of scores."""
    return MISSING if low is None or high is None else f"{score(low)} to {score(high)}"


def signed_interval(low: float | None, high: float | None) -> str:
    """Two ends of an interval of differences."""
    return MISSING if low is None or high is None else f"{signed(low)} to {signed(high)}"


def open_interval(low: float | None, high: float | None, number: Number = signed) -> str:
    """The same for simultaneous intervals, whose end is open where it is exactly 0.

    >>> open_interval(0.0, 0.0433), open_interval(-0.2, 0.0), open_interval(-0.01, 0.02)
    ('above 0 to +0.043', '-0.200 to below 0', '-0.010 to +0.020')
    """
    return MISSING if low is None or high is None else sentences.open_interval(low, high, number)


def true_minus(number: str) -> str:
    """A written number, or an interval of numbers, with a true minus sign in place of the hyphen.

    >>> true_minus("-0.200 to below 0")
    '−0.200 to below 0'
    """
    return number.replace("-", "−")


def signed_minus(value: float | None) -> str:
    """A difference with its sign, a true minus sign where it is negative."""
    return true_minus(signed(value))


def p_value(value: float | None) -> str:
    """A p-value, never shown as zero."""
    if value is None or not math.isfinite(value):
        return MISSING
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def chance(value: float | None) -> str:
    """A probability in whole per cent, never shown as certain."""
    if value is None or not math.isfinite(value):
        return MISSING
    if 0.995 < value < 1 or value == 1:
        return ">99 %"
    return "<1 %" if value < 0.005 else f"{100 * value:.0f} %"


def share(value: float) -> str:
    """A share in per cent, with one decimal where it is small.

    >>> share(0.1234), share(0.0421), share(0.0001)
    ('12 %', '4.2 %', '<0.1 %')
    """
    return f"{per_cent(value)} %"


def per_cent(value: float) -> str:
    """The same without the sign, for a cell of a matrix."""
    return "<0.1" if 0 < value < 0.0005 else f"{100 * value:.{0 if value >= 0.0995 else 1}f}"


def count(value: int | None) -> str:
    """A whole number with separators; `unknown` rather than 0."""
    return "unknown" if value is None else f"{value:,}"


def flops(number: int | None) -> str:
    """A number of floating point operations.

    >>> flops(1_234_567), flops(None)
    ('1.23 MFLOP', 'unknown')
    """
    if number is None:
        return "unknown"
    for size, unit in ((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP")):
        if number >= size:
            return f"{rounded(number / size, 3)} {unit}"
    return f"{number} FLOP"


def size(number: int) -> str:
    """Bytes as people write them.

    >>> size(0), size(999), size(1_500), size(143_000_000), size(2_300_000_000)
    ('0 B', '999 B', '1.5 kB', '143 MB', '2.3 GB')
    """
    value, units = float(number), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if value >= 100 or units[0] == "B" else f"{value:.1f} {units[0]}"


def duration(seconds: float | None) -> str:
    """A time in the two largest units.

    >>> duration(0.0523), duration(3.21), duration(252), duration(7500)
    ('52 ms', '3.2 s', '4 min 12 s', '2 h 5 min')
    """
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    if 0 < seconds < 0.0995:
        return f"{rounded(1000 * seconds)} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(seconds / 60)
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes / 1440:.1f} days"


def number_ranges(numbers: Sequence[int]) -> str:
    """Whole numbers, neighbours joined.

    >>> number_ranges([0, 1, 2, 5])
    '0 to 2, 5'
    """
    groups: list[list[int]] = []
    for number in sorted(set(numbers)):
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ", ".join(str(group[0]) if len(group) == 1 else f"{group[0]} to {group[-1]}" for group in groups)


def outcome(item: ComparisonResult, names: tuple[str, str] | None = None) -> str:
    """A comparison's verdict in a few words; `names` stand for its sides where their own would be too long.

    An interaction has no better arm: an advantage is larger or smaller.
    """
    a, b = names or item.side_names
    if item.kind == "interaction" and item.verdict in ("a", "b"):
        return f"{'larger' if item.verdict == 'a' else 'smaller'} for {a}"
    if item.kind == "order" and item.verdict in ("a", "b"):
        return f"{a} is {'higher' if item.verdict == 'a' else 'lower'}"
    if item.kind == "agreement" and item.verdict in ("a", "b"):
        return "they rise together" if item.verdict == "a" else "one falls where another rises"
    return {
        "a": f"{a} is better",
        "b": f"{b} is better",
        "same": f"{a} and {b} are the same within ±{item.margin:g}",
        "undecided": "undecided",
    }[item.verdict]


def subtraction(item: ComparisonResult) -> str:
    """What is subtracted from what: `pool − strided`."""
    a, b = item.side_names
    return f"({a}) − ({b})" if item.kind == "interaction" else f"{a} − {b}"


def headline(primary: Sequence[ComparisonResult]) -> str:
    """The answer in a few words; a question about settings rests on one comparison with each other setting."""
    if len(primary) == 1:
        advantage = primary[0].kind == "interaction" and primary[0].verdict in ("a", "b")
        return f"the advantage is {outcome(primary[0])}" if advantage else outcome(primary[0])
    if all(item.verdict == "a" for item in primary):
        return f"{primary[0].a} is best"
    if any(item.verdict == "b" for item in primary):
        return f"{primary[0].a} is not best"
    return "undecided"


def seeds_needed(item: ComparisonResult, least: int = 6) -> str:
    """How many more seeds the comparison needs, in words."""
    if item.verdict != "undecided":
        return "none"
    if item.seeds_needed is not None:
        return re.sub(" (seed|run)s?( of each arm)?$", "", sentences.more_seeds(item, least).removeprefix("about "))
    return "none would help: a side only failed" if item.difference is None else "no number would do"


def claim_outcome(item: ClaimResult) -> str:
    """The outcome of a claim, in words."""
    if item.verdict != "hint":
        return item.verdict
    return {
        "holds": "hint: it seems to hold",
        "fails": "hint: it seems to fail",
        "undecided": "hint: these runs do not decide it",
        None: "hint: no result yet",
    }[item.leans]


def reports_line(names: Sequence[str]) -> str:
    """What reports R0 to R4 are, for the first place that names one; empty if none of `names` is one of them."""
    about = "Reports R0 to R4 are the five student reports on deep learning whose claims Tiebreak checks."
    return about if set(names) & set(REPORTS) else ""


def sources(names: Sequence[str]) -> str:
    """Where a claim or a figure comes from; the five reports that Tiebreak examines are called reports.

    >>> sources(["R0"]), sources(["R0", "R3"]), sources(["ten public re-runs"]), sources([])
    ('report R0', 'reports R0 and R3', 'ten public re-runs', '')
    """
    reports, others = ([name for name in names if (name in REPORTS) == known] for known in (True, False))
    every = list(REPORTS) == reports
    named = f"{reports[0]} to {reports[-1]}" if every else listed(reports)
    called = [f"{'report' if len(reports) == 1 else 'reports'} {named}"] if reports else []
    return "; ".join([*called, *others])
