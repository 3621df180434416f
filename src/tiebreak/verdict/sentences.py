"""Verdicts in words: one plain sentence per comparison, and the answer to the study's question."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.study.schema import Agreement, Comparison, Interaction, Order, Study
from tiebreak.verdict.model import ComparisonResult
from tiebreak.verdict.statistics import Compared


def sentence(
    comparison: Comparison, a: str, b: str, metric: str, result: Compared, margin: float, *, least: int = 0
) -> str:
    """What came of a comparison, with the evidence in brackets; `least`: the fewest seeds that can decide it."""
    if result.difference is None:
        return f"{a.replace(' - ', ' − ')} and {b.replace(' - ', ' − ')} share no finished seed yet."
    evidence = _evidence(metric, result, least)
    if isinstance(comparison, Interaction):
        return f"{_interaction(comparison, result, margin)} ({evidence})."
    if isinstance(comparison, Order):
        return f"{_order(a, b, result, margin)} ({_evidence('difference', result, least)})."
    if isinstance(comparison, Agreement):
        return f"{_agreement(comparison, result, margin)} ({_evidence('least rank correlation', result, least)})."
    if result.verdict == "same":
        return f"{a} and {b} are the same within ±{margin:g} ({evidence})."
    if result.verdict == "undecided":
        return f"Undecided between {a} and {b} ({evidence})."
    winner, loser = (a, b) if result.verdict == "a" else (b, a)
    return f"{winner} is better than {loser} ({evidence})."


def _evidence(metric: str, result: Compared, least: int) -> str:
    seeds = f"{result.seeds} paired seed{'s' if result.seeds != 1 else ''}"
    if result.low is None or result.high is None:
        return f"{metric} {result.difference:+.4f}, {seeds}"
    # stats.py cuts an interval at 0 where Holm's step settles the sign: such an end is open
    low = "above 0" if result.low == 0 < result.high else f"{result.low:+.4f}"
    high = "below 0" if result.low < 0 == result.high else f"{result.high:+.4f}"
    clear = result.low > 0 or result.high < 0  # so that a reader will ask why it is undecided
    few = f", at least {least} could decide" if clear and result.verdict == "undecided" and result.seeds < least else ""
    return f"{metric} {result.difference:+.4f}, 95 % interval {low} to {high} over {seeds}{few}"


def _interaction(item: Interaction, result: Compared, margin: float) -> str:
    first, second = f"the advantage of {item.a} over {item.b}", f"that of {item.c} over {item.d}"
    if result.verdict == "same":
        return f"T{first[1:]} and {second} are the same within ±{margin:g}"
    if result.verdict == "undecided":
        return f"Undecided whether {first} is larger than {second}"
    return f"T{first[1:]} is {'larger' if result.verdict == 'a' else 'smaller'} than {second}"


def _order(a: str, b: str, result: Compared, margin: float) -> str:
    if result.verdict == "same":
        return f"{a} and {b} are the same within ±{margin:g}"
    if result.verdict == "undecided":
        return f"Undecided whether {a} is above {b}"
    return f"{a} is {'above' if result.verdict == 'a' else 'below'} {b}"


def _agreement(item: Agreement, result: Compared, margin: float) -> str:
    those = f"{', '.join(item.metrics[:-1])} and {item.metrics[-1]} of {item.arm}"
    if result.verdict == "same":
        return f"Over the epochs of a run, two of {those} have nothing to do with each other within ±{margin:g}"
    if result.verdict == "undecided":
        return f"Undecided whether {those} rise together over the epochs of a run"
    if result.verdict == "a":
        return f"Over the epochs of a run, {those} rise together"
    return f"Over the epochs of a run, one of {those} falls where another rises"


def answer(study: Study, comparisons: Sequence[ComparisonResult], *, complete: bool) -> str:
    """The primary comparison in words; what is still needed when it is undecided."""
    primary = [item for item in comparisons if item.primary]
    text = " ".join(item.sentence for item in primary)
    wanted = max((item.seeds + item.seeds_needed for item in primary if item.seeds_needed), default=0)
    if wanted > study.seeds:
        text += f" About {wanted} seeds would decide (--seeds {wanted})."
    elif wanted and not complete:
        text += f" The {study.seeds} planned seeds may decide; {min(item.seeds for item in primary)} are there."
    return text
