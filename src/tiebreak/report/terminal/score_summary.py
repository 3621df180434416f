"""What `tiebreak compare` prints: every arm with its mean and every seed, then each comparison; or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from tiebreak.report import formatting
from tiebreak.text import number_of, printable
from tiebreak.verdict import sentences
from tiebreak.verdict.model import ArmResult, ComparisonResult, Verdict
from tiebreak.verdict.ranking import ranking_line
from tiebreak.verdict.scores import Scores
from tiebreak.verdict.statistics import least_seeds

MOST_STYLED = 200  # comparisons: for more, wrapping lines and bold letters take most of the time
MOST_SEEDS = 200  # of an arm, one by one; --json holds all
TESTS = {"paired-t": "paired t-test", "welch": "Welch's t-test", "wilcoxon": "Wilcoxon's signed-rank test"}


def score_rows(sets: Mapping[str, Scores]) -> Iterator[dict[str, str | int | float]]:
    """Every score with its arm and seed, and its data set where the table names them."""
    for name, scores in sets.items():
        for arm, own in scores.items():
            for seed, score in own.items():
                yield {**({"dataset": name} if name else {}), "arm": arm, "seed": seed, "score": score}


def compared_json(verdict: Verdict, sets: Mapping[str, Scores]) -> str:
    """The verdict as in verdict.json, and every score, a line each."""
    rows = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in score_rows(sets))
    return verdict.to_json().rstrip().removesuffix("}").rstrip() + f',\n  "scores": [\n{rows}\n  ]\n}}'


def print_compared(console: Console, verdict: Verdict, sets: Mapping[str, Scores], *, seeded: bool = True) -> None:
    """The arms and the comparisons, in words: one paragraph each. Not `seeded`: the table only has runs."""
    styled = len(verdict.comparisons) <= MOST_STYLED

    def write(text: Text) -> None:
        if styled:
            console.print(text)
        else:
            console.out(printable(text.plain), highlight=False)

    every = [own for scores in sets.values() for own in scores.values()]
    for result, own in zip(verdict.designs, every, strict=True):
        for line in _arm(result, own, seeded):
            write(line)
    write(Text())
    for item in verdict.comparisons:
        for line in _comparison(item):
            write(line)
    if verdict.ranking:
        write(Text(printable(ranking_line(verdict.ranking, verdict.seeds)), style="dim"))
    write(Text(f"margin {verdict.margin:g}: a smaller difference does not matter (--margin)", style="dim"))
    if len(verdict.comparisons) > 1:
        write(Text(_family(verdict.comparisons), style="dim"))
    for warning in verdict.warnings:
        write(Text(f"note: {printable(warning)}"))


def _family(items: Sequence[ComparisonResult]) -> str:
    over = sum(item.test == "wilcoxon" for item in items)
    counted = f"the {over} over data sets and the {len(items) - over} on single sets apart" if over else f"{len(items)}"
    return f"Adjusted p and intervals: Holm over the comparisons asked for, {counted}."


def _arm(result: ArmResult, scores: Mapping[int | str, float], seeded: bool) -> Iterator[Text]:
    spread = f" ± {_four_digits(result.sd)} (standard deviation)" if result.sd is not None else ""
    interval = ""
    if result.low is not None and result.high is not None:
        interval = f", 95 % interval of the mean {_four_digits(result.low)} to {_four_digits(result.high)}"
    over = number_of(result.seeds, "seed" if seeded else "run")
    mean = f"mean {_four_digits(result.mean or 0.0)}{spread} over {over}{interval}"
    yield Text.assemble((f"{printable(result.name)}: ", "bold"), mean)
    first = list(scores.items())[:MOST_SEEDS]
    shown = [f"{printable(seed)}: {score:.6g}" if seeded else f"{score:.6g}" for seed, score in first]
    left = len(scores) - len(shown)
    more = f", and {left:,} more (--json has all)" if left else ""
    yield Text(f"  {'by seed' if seeded else 'runs'}  {', '.join(shown)}{more}", style="dim")


def _comparison(item: ComparisonResult) -> Iterator[Text]:
    a, b = printable(item.a), printable(item.b)
    yield Text.assemble((f"{printable(item.name)}: ", "bold"), printable(formatting.outcome(item)))
    if item.difference is None:
        return
    interval = ""
    if item.low is not None:
        interval = f", 95 % interval {formatting.open_interval(item.low, item.high, _signed)}"
    yield Text(f"  difference {_signed(item.difference)}{interval}, over {sentences.replicates(item)}")
    if item.p is not None:
        exact = {"sign-flip": item.p_sign_flip, "permutation": item.p_permutation}
        also = "".join(f", {name} {formatting.p_value(p)}" for name, p in exact.items() if p is not None)
        chance = f"a fresh run of {a} beats one of {b} with chance {formatting.chance(item.p_a_better)}"
        if item.test == "wilcoxon":
            chance = f"{a} is better on {formatting.share(item.p_a_better or 0.0)} of the sets"
        p, adjusted = formatting.p_value(item.p), formatting.p_value(item.p_adjusted)
        yield Text(f"  p {p} ({TESTS[item.test]}), adjusted {adjusted}{also}; {chance}")
    if item.seeds_needed:
        yield Text(f"  needs {sentences.more_seeds(item, least_seeds(1))}")


def _signed(value: float) -> str:
    return f"{value:+.4g}"


def _four_digits(value: float) -> str:
    return f"{value:.4g}"
