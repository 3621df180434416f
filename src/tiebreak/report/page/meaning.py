"""The meaning of a comparison in one line, without intervals."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.verdict.model import ComparisonResult

EXAMPLES = 1000  # a difference in accuracy is stated as so many more right answers out of these


def meaning(primary: Sequence[ComparisonResult], *, countable: bool = True) -> str:
    """What the answer means; for a question about several settings, what the margin does.

    A difference in accuracy is counted in examples, unless it may be a per cent, as that of a program.
    """
    if len(primary) != 1:
        margin = max((item.margin for item in primary), default=0.0)
        return f"Differences smaller than {margin:g} do not matter here: they would count as the same."
    examples = _examples(primary[0]) if countable else ""
    return " ".join(part for part in (examples, _margin(primary[0])) if part)


def _examples(item: ComparisonResult) -> str:
    """A decided accuracy, counted in test examples."""
    if item.metric != "accuracy" or item.kind == "interaction" or item.verdict not in ("a", "b"):
        return ""
    more = round(EXAMPLES * abs(item.difference or 0.0))
    if not more:
        return ""
    winner, loser = (item.a, item.b) if item.verdict == "a" else (item.b, item.a)
    return f"Of {EXAMPLES:,} test examples, {winner} gets about {more:,} more right than {loser}."


def _margin(item: ComparisonResult) -> str:
    least = f"{item.margin:g}, the least difference that matters here"
    if item.difference is None or item.low is None or item.high is None:
        return f"There are too few runs to say anything about {least}."
    if item.verdict == "same":
        return f"Whatever difference there is, it is smaller than {least}: choose by cost or taste."
    if item.verdict == "undecided":
        if item.low <= 0 <= item.high:
            return f"The runs do not settle it: they fit no difference at all as well as one larger than {least}."
        return f"There are too few seeds to settle it, or to compare it with {least}."
    if min(abs(item.low), abs(item.high)) >= item.margin:
        return f"The whole interval lies beyond {least}."
    if abs(item.difference) >= item.margin:
        return f"The best estimate is larger than {least}, but the interval does not exclude a smaller one."
    return f"There is a difference, but the best estimate is smaller than {least}."
