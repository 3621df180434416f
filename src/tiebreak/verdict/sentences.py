"""Verdicts in words: one sentence for each comparison, the answer to the study's question, the reason for a claim.

Every sentence is made from data. `number` writes a difference and the ends of its interval, so that a report can show
fewer decimals than `verdict.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tiebreak.results.correlation import LEAST_POINTS
from tiebreak.study import registry
from tiebreak.study.schema import MOST_SEEDS, SEEDS_LIMIT, Claim, Study
from tiebreak.text import number_of
from tiebreak.verdict.model import ComparisonResult, Stopping
from tiebreak.verdict.statistics import least_seeds

Number = Callable[[float], str]
TELLING_SEEDS = 4  # with fewer, the spread over seeds is too uncertain to extrapolate: with 2 it may be 30 times off
NOISE = 1e-12  # what rounding may leave of 0: no number smaller than it is written
SMALL = 0.0005  # a smaller number is written with significant digits: decimals would show zero
NAMES = {"order": "difference", "agreement": "least rank correlation"}  # of the number, where it is not a metric's


def decimals(value: float) -> int:
    """How many decimals a sentence of `verdict.json` gives a number: four, fewer where it is large.

    >>> [decimals(value) for value in (0.0221, 5.83, 13.6289, 240.1)]
    [4, 3, 2, 1]
    """
    return 4 - sum(abs(value) >= size for size in (1, 10, 100))


def four_decimals(value: float) -> str:
    """A difference as `verdict.json` writes it, with `decimals`, or two significant digits of a small one."""
    return f"{value:+.2g}" if NOISE < abs(value) < SMALL else f"{value:+.{decimals(value)}f}"


def sentence(item: ComparisonResult, *, least: int = 0, number: Number = four_decimals) -> str:
    """The outcome of a comparison, with the evidence in brackets; `least`: the fewest seeds that can decide it."""
    if item.difference is None and item.kind == "agreement":
        return f"There is no {item.a} yet: it takes a finished run of at least {LEAST_POINTS} epochs."
    if item.difference is None and item.seeds_needed is None:
        return (
            f"{item.side_names[0]} and {item.side_names[1]} cannot be compared: every run of a side diverged or failed."
            " Mend the cause and run the study again."
        )
    if item.difference is None:
        return f"{item.side_names[0]} and {item.side_names[1]} share no finished seed yet."
    outcome = {"interaction": _interaction, "order": _order, "agreement": _agreement}.get(item.kind, _pair)
    where = " on this test set" if item.on_this_test_set else ""
    return f"{outcome(item)}{where} ({_evidence(item, item.difference, least, number)})."


def sentences(items: Sequence[ComparisonResult], *, comparisons: int, number: Number = four_decimals) -> str:
    """Several of a study's comparisons in words."""
    return " ".join(sentence(item, least=least_seeds(comparisons), number=number) for item in items)


def _evidence(item: ComparisonResult, difference: float, least: int, number: Number) -> str:
    name, seeds = NAMES.get(item.kind) or registry.metric_label(item.metric), replicates(item)
    if item.low is None or item.high is None:
        return f"{name} {number(difference)}, {seeds}"
    interval = open_interval(item.low, item.high, number)
    clear = item.low > 0 or item.high < 0  # so that a reader will ask why it is undecided
    few = f", at least {least} could decide" if clear and item.verdict == "undecided" and item.seeds < least else ""
    return f"{name} {number(difference)}, 95 % interval {interval} over {seeds}{few}"


def replicates(item: ComparisonResult) -> str:
    """What the interval is over: paired seeds, unpaired runs (Welch's test), data sets (Wilcoxon's test)."""
    if item.test == "welch" and item.runs is not None:
        return f"{item.runs[0]:,} and {item.runs[1]:,} unpaired runs (Welch's t-test)"
    if item.test == "wilcoxon":
        return f"{number_of(item.seeds, 'data set')} (Wilcoxon's signed-rank test)"
    return number_of(item.seeds, "paired seed")


def open_interval(low: float, high: float, number: Number) -> str:
    """A simultaneous interval. Holm's step may cut it at 0, where it settles the sign: that end is open.

    So is an end next to 0, beside one that is not: with few decimals it would be written as 0.
    """
    ends = number(low), number(high)
    if low == high:
        return f"{ends[0]} to {ends[1]}"
    nothing = min(SMALL / 10, max(-low, high) / 100)
    above, below = low == 0 or 0 < low < nothing, high == 0 or -nothing < high < 0
    return f"{'above 0' if above else ends[0]} to {'below 0' if below else ends[1]}"


def _pair(item: ComparisonResult) -> str:
    if item.verdict == "same":
        return f"{item.a} and {item.b} are the same within ±{item.margin:g}"
    if item.verdict == "undecided":
        return f"Undecided between {item.a} and {item.b}"
    winner, loser = (item.a, item.b) if item.verdict == "a" else (item.b, item.a)
    return f"{winner} is better than {loser}"


def _interaction(item: ComparisonResult) -> str:
    a, b, c, d = (side.arm for side in item.sides)
    first, second = f"advantage of {a} over {b}", f"that of {c} over {d}"
    if item.verdict == "same":
        return f"The {first} and {second} are the same within ±{item.margin:g}"
    if item.verdict == "undecided":
        return f"Undecided whether the {first} is larger than {second}"
    return f"The {first} is {'larger' if item.verdict == 'a' else 'smaller'} than {second}"


def _order(item: ComparisonResult) -> str:
    if item.verdict == "same":
        return f"{item.a} and {item.b} are the same within ±{item.margin:g}"
    if item.verdict == "undecided":
        return f"Undecided whether {item.a} is above {item.b}"
    return f"{item.a} is {'above' if item.verdict == 'a' else 'below'} {item.b}"


def _agreement(item: ComparisonResult) -> str:
    (side,) = item.sides
    those = f"{', '.join(side.metrics[:-1])} and {side.metrics[-1]} of {side.arm}"
    if item.verdict == "same":
        return f"Over the epochs of a run, two of {those} are not correlated, within ±{item.margin:g}"
    if item.verdict == "undecided":
        return f"Undecided whether {those} rise together over the epochs of a run"
    if item.verdict == "a":
        return f"Over the epochs of a run, {those} rise together"
    return f"Over the epochs of a run, one of {those} falls where another rises"


def answer(
    comparisons: Sequence[ComparisonResult],
    *,
    seeds: int,
    complete: bool,
    stopping: Stopping | None = None,
    number: Number = four_decimals,
    advice: bool = True,
) -> str:
    """The primary comparison in words, and the seeds still needed where it is undecided.

    `seeds` are planned; `complete` says whether every planned run has ended. Without `advice` it names no option of a
    command: for a paper.
    """
    primary = [item for item in comparisons if item.primary]
    text = sentences(primary, comparisons=len(comparisons), number=number)
    more = max((item.seeds_needed for item in primary if item.seeds_needed), default=0)
    if stopping is not None:
        more = max(item.seeds_needed or 0 for item in comparisons if item.primary or stopping.comparisons == "all")
        at_end = advice and 0 < more <= SEEDS_LIMIT - seeds and stopping.reason in ("most seeds", "futile")
        larger = f" To go on, at what is left of the 5 %: --max-seeds {seeds + more}." if at_end else ""
        return f"{text} {stopped(stopping, seeds)}{larger}"
    if not complete:
        there = min((item.seeds for item in primary), default=0)
        missing = f"{there} of the {seeds} planned seeds are there" if there < seeds else "planned runs are missing"
        return f"{text} Not final: {missing}."
    if more and advice:
        text += f" {_seeds_sentence(primary, seeds, least_seeds(len(comparisons)))}"
    return text


def _seeds_sentence(primary: Sequence[ComparisonResult], seeds: int, least: int) -> str:
    """How many seeds would decide, what that rests on, and how to train them.

    More seeds come on top of those planned: where runs failed, fewer are compared.
    """
    open_items = [item for item in primary if item.seeds_needed]
    there, enough = min(item.seeds for item in open_items), seeds + max(_more(item, least) for item in open_items)
    if not all(_tells(item) for item in open_items):
        until = f"--until-decided{f' --max-seeds {enough}' if enough > MOST_SEEDS else ''}"
        return (
            f"At least {number_of(enough, 'seed')} are needed; {there} cannot tell how many more. "
            f"{until} takes as many as the question needs (or --seeds {enough})."
        )
    about = f"About {enough:,} seeds would decide, judged by the spread of these {there}"
    if enough > SEEDS_LIMIT:
        return f"{about}: more than a study can have ({SEEDS_LIMIT:,})."
    counted = ", counted as a further look" if seeds >= least else ""
    return f"{about} (--seeds {enough}{counted})."


def _tells(item: ComparisonResult) -> bool:
    """Whether its seeds tell how many would decide: enough of them, and not all with the same difference."""
    return item.seeds >= TELLING_SEEDS and (item.low is None or item.low != item.high)


def _more(item: ComparisonResult, least: int) -> int:
    return item.seeds_needed or 0 if _tells(item) else max(1, least - item.seeds)


def more_seeds(item: ComparisonResult, least: int) -> str:
    """How many more seeds an undecided comparison needs: with few, only the least that can decide is known."""
    each = ("more run of each arm", "more runs of each arm") if item.test == "welch" else ("more seed", "more seeds")
    return f"{'about' if _tells(item) else 'at least'} {number_of(_more(item, least), *each)}"


def stopped(stopping: Stopping, seeds: int) -> str:
    """Where a study stands that takes seeds until it is decided, in one sentence."""
    chance = f"{100 * stopping.chance:.0f} %" if stopping.chance is not None else ""
    most = f"{stopping.max_seeds} seeds"
    decide = "to decide every comparison" if stopping.comparisons == "all" else "to decide"
    if stopping.reason == "decided" and seeds > stopping.max_seeds:
        return f"Decided by the {seeds} seeds that are here already; at most {stopping.max_seeds} were asked for."
    if stopping.reason == "decided":
        return f"Decided after {number_of(seeds, 'seed')}, of at most {stopping.max_seeds}."
    if stopping.reason == "most seeds" and seeds > stopping.max_seeds:
        return f"Stopped: {seeds} seeds are here already, and at most {stopping.max_seeds} were asked for."
    if stopping.reason == "most seeds":
        return f"Stopped: {most} were the most."
    whole = "at most " if stopping.comparisons == "all" else ""  # it is that of the least certain comparison
    if stopping.reason == "futile":
        return f"Stopped after {seeds}: the chance {decide} with at most {most} is {whole}{chance}."
    hope = f"; with at most {most} the chance {decide} is {whole}{chance}" if chance else ""
    state = "Undecided so far: the next look" if stopping.reason == "goes on" else "Not final: the look"
    return f"{state} is at {number_of(stopping.next or seeds, 'seed')}{hope}."


def claim_reason(
    study: Study, claim: Claim, comparisons: Sequence[ComparisonResult], *, hint: bool, number: Number = four_decimals
) -> str:
    """The comparisons that a claim rests on, in words; for a hint also which protocol the claim was made for."""
    own = claim_comparisons(claim, comparisons)
    text = sentences(own, comparisons=len(comparisons), number=number)
    if not hint:
        return text
    here = f"{study.data} (protocol {study.protocol}, {number_of(study.budget.epochs, 'epoch')})"
    epochs = number_of(claim.epochs or study.budget.epochs, "epoch")
    return f"The claim is about {claim.data} (protocol {claim.protocol}, {epochs}), these runs are on {here}. {text}"


def claim_comparisons(claim: Claim, comparisons: Sequence[ComparisonResult]) -> list[ComparisonResult]:
    """The comparisons that a claim rests on."""
    return [item for item in comparisons if item.group in (claim.comparison, *claim.also)]
