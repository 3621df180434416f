"""What is odd about comparisons, as warnings: each once, with the comparisons that it is about."""

from __future__ import annotations

from collections.abc import Iterable

from tiebreak.text import listed, number_of
from tiebreak.verdict.model import ComparisonResult
from tiebreak.verdict.skewness import LOPSIDED


def flag_lines(flags: Iterable[tuple[ComparisonResult, str]], most: int | None = None) -> list[str]:
    """A line for each flag; more comparisons than `most` are counted instead of named."""
    names: dict[str, list[str]] = {}
    for item, flag in flags:
        lopsided = flag == LOPSIDED and item.skewness is not None
        names.setdefault(flag, []).append(f"{item.name} (skewness {item.skewness:.1f})" if lopsided else item.name)
    return [
        f"{listed(some) if most is None or len(some) <= most else number_of(len(some), 'comparison')}: {flag}"
        for flag, some in names.items()
    ]
