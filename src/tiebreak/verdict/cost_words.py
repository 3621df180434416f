"""What the better arm costs, in words: training time alone, parameters and work, beside the score."""

from __future__ import annotations

from collections.abc import Sequence

from tiebreak.text import listed, rounded
from tiebreak.verdict.model import ArmResult, ComparisonResult

NEAR = 0.25  # arms are timed alone but not in turns: a smaller difference is not told from other work on the machine
NOT_TIMED = "training time was not measured alone"


def cost_sentence(comparisons: Sequence[ComparisonResult], arms: Sequence[ArmResult]) -> str:
    """The costs of the primary comparison's arms, the better one first; empty where it does not compare two arms."""
    primary = [item for item in comparisons if item.primary]
    by_name = {arm.name: arm for arm in arms}
    if len(primary) != 1 or primary[0].kind != "pair":
        return ""
    item = primary[0]
    first, second = (item.b, item.a) if item.verdict == "b" else (item.a, item.b)
    if first not in by_name or second not in by_name:
        return ""
    a, b = by_name[first], by_name[second]
    known = [_amount(a.parameters, b.parameters, "parameters"), _amount(a.flops, b.flops, "work for an example")]
    parts = [_time(a, b), *filter(None, known)]
    if not any(known) and None in (a.step_ms, b.step_ms):
        return ""
    return f"Cost of {a.name} against {b.name}: {listed(parts)}."


def _time(a: ArmResult, b: ArmResult) -> str:
    if not a.step_ms or not b.step_ms:
        return NOT_TIMED
    ratio, times = a.step_ms / b.step_ms, f"{rounded(a.step_ms)} against {rounded(b.step_ms)} ms"
    times = f"a training step alone, not timed in turns: {times}"
    if abs(ratio - 1) < NEAR:
        return f"about as fast ({times})"
    if ratio > 2:
        return f"{rounded(ratio)} times slower ({times})"
    if ratio < 0.5:
        return f"{rounded(1 / ratio)} times faster ({times})"
    return f"{abs(ratio - 1):.0%} {'slower' if ratio > 1 else 'faster'} ({times})".replace("%", " %")


def _amount(a: int | None, b: int | None, what: str) -> str:
    if not a or not b:
        return ""
    if a == b:
        return f"the same {what}"
    ratio = a / b
    return f"{rounded(ratio)} times the {what}" if round(ratio, 2) != 1 else f"{a:,} against {b:,} {what}"
