"""Arms that did best at an end of the grid: a value beyond it may be better still, so they may be under-tuned."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Literal

from tiebreak.results.tally import Tally
from tiebreak.study import registry
from tiebreak.text import listed
from tiebreak.verdict import ranges
from tiebreak.verdict.model import ArmResult, Edge

LARGEST_STEP = math.sqrt(10)  # 0.1 is followed by 0.3, not by 1
SHARES = ("momentum", "beta1", "beta2", "dropout", "label_smoothing")  # between 0 and 1


def edges(tally: Tally, arm: str) -> tuple[Edge, ...]:
    """The hyper-parameters whose chosen value is the smallest or the largest that was tried and finished.

    A value that cannot be exceeded (dropout 0) is no edge, nor is the only value of its hyper-parameter.
    """
    metric = f"val_{tally.study.metric}"
    finished = [each for each in tally.study.settings(arm) if tally.scores(arm, each, metric)]
    chosen = tally.chosen(arm)
    if chosen not in finished or _is_perfect(tally, tally.scores(arm, chosen, metric).values()):
        return ()
    found = []
    for name, values in tally.study.grid_of(tally.study.arm(arm)).items():
        tried = {each[name] for each in finished}
        if len(tried) < 2 or min(values) < chosen[name] < max(values):
            continue
        largest = chosen[name] == max(values)
        beyond = next_value(name, sorted(set(values)), largest=largest)
        if beyond is not None:
            wider = (beyond, *values) if (values[0] > values[-1]) == largest else (*values, beyond)
            end: Literal["smallest", "largest"] = "largest" if largest else "smallest"
            found.append(Edge(name=name, value=chosen[name], end=end, wider=wider))
    return tuple(found)


def _is_perfect(tally: Tally, scores: Collection[float]) -> bool:
    """Whether every run has the best value that the metric can take: no other setting can do better."""
    low, high = ranges.range_of(tally.study.metric, tally.study.task)
    return all(score == (high if tally.study.goal() == "max" else low) for score in scores)


def next_value(name: str, values: Sequence[float], *, largest: bool) -> float | None:
    """The value to try beyond one end of these (ascending, at least two); None where there can be none.

    >>> next_value("lr", [0.001, 0.01, 0.1], largest=True), next_value("dropout", [0.2, 0.7], largest=True)
    (0.3, 0.85)
    """
    low, high = 0.0, math.inf  # of a program's own hyper-parameter nothing is known
    if name in registry.HYPERS:
        low, high = registry.HYPERS[name].low, registry.HYPERS[name].high
    end, before = (values[-1], values[-2]) if largest else (values[0], values[1])
    if end >= high or end <= low:
        return None
    if name in SHARES:
        beyond = (1 + end) / 2 if largest else end / 2
    else:
        ratio = max(end, before) / min(end, before) if before > 0 else LARGEST_STEP
        beyond = end * min(ratio, LARGEST_STEP) if largest else end / min(ratio, LARGEST_STEP)
    if name not in registry.HYPERS and all(isinstance(value, int) for value in values):
        return round(beyond) if round(beyond) != end else None
    for digits in (1, 2, 3, 6):  # as short as it can be without falling back on the end
        short = float(f"{beyond:.{digits}g}")
        if abs(short - beyond) < 0.2 * abs(beyond - end) and low <= short <= high:
            return short
    return None


def edge_sentences(arms: Sequence[ArmResult]) -> list[str]:
    """One sentence for each end of the grid at which some arms did best."""
    ends: dict[tuple[str, str, float], list[str]] = {}
    for arm in arms:
        for edge in arm.at_edge:
            ends.setdefault((edge.name, edge.end, edge.value), []).append(arm.name)
    lines = []
    for (name, end, value), names in ends.items():
        who = "every arm" if len(names) == len(arms) > 2 else listed(names)
        beyond = "larger" if end == "largest" else "smaller"
        lines.append(f"Best at the {end} {name} tried ({value:g}): {who}. No {beyond} one was tried: under-tuned?")
    return lines


def wider_grid(arms: Sequence[ArmResult]) -> dict[str, tuple[float, ...]]:
    """The grid with a value more at every end at which some arm did best; only what changes.

    Empty where arms have different grids: `--grid` widens the study's only, and more settings are an advantage.
    """
    if any(each.kind == "grid" for arm in arms for each in arm.differences or ()):
        return {}
    found: dict[str, tuple[float, ...]] = {}
    for edge in (edge for arm in arms for edge in arm.at_edge if edge.wider):
        known = found.get(edge.name, ())
        joined = dict.fromkeys((*known, *edge.wider))
        found[edge.name] = tuple(sorted(joined, reverse=edge.wider[0] > edge.wider[-1]))
    return found


def wider_arms(arms: Sequence[ArmResult]) -> str:
    """The wider grid of each arm that did best at an end of its own, for the study file."""
    grids = (
        f"{arm.name} {edge.name} = [{', '.join(f'{value:g}' for value in edge.wider)}]"
        for arm in arms
        for edge in arm.at_edge
    )
    return "; ".join(grids) + "; every arm should have as many settings"
