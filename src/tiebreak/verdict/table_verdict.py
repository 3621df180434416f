"""The verdict on a table of scores: the same object as that of a study, without what only a plan or records can say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tiebreak.text import listed, number_of
from tiebreak.verdict import ranges, sentences, statistics
from tiebreak.verdict.flags import flag_lines
from tiebreak.verdict.model import ArmResult, ComparisonResult, Metric, RankedArm, Side, Verdict, measured
from tiebreak.verdict.ranking import rank
from tiebreak.verdict.scores import Pairing, Pairs, Scores, common_arms, compare_each_set, compare_sets
from tiebreak.verdict.statistics import Compared, Goal

MOST_NAMED = 3  # comparisons in one warning
LATER = (
    "comparing again with more runs added is a further look, which the 5 % do not cover (added twice, equal arms look "
    "different in 8 %): compare the new runs alone; `tiebreak run --until-decided` counts its looks"
)
NO_SEEDS = "the table has no seeds, so runs are compared as unpaired"


@dataclass(frozen=True, kw_only=True)
class TableQuestion:
    """What is asked of a table: its name, the score, which way is better, the margin, which pairs and how paired."""

    name: str
    metric: str = "score"
    goal: Goal = "max"
    margin: float
    pairs: Pairs | None = None
    pairing: Pairing = "auto"
    notes: Sequence[str] = field(default_factory=tuple)


def table_verdict(sets: Mapping[str, Scores], asked: TableQuestion) -> Verdict:
    """The verdict on scores by data set, arm and seed; one data set may be called "".

    With several sets, the comparisons over sets are the primary ones. Holm counts them apart from those on each set.
    """
    common_arms(sets)
    every = [(arm, score) for scores in sets.values() for arm, own in scores.items() for score in own.values()]
    limits = ranges.range_of_scores(asked.metric, [score for _, score in every])
    each = compare_each_set(sets, goal=asked.goal, margin=asked.margin, pairs=asked.pairs, pairing=asked.pairing)
    items = [_comparison(asked, (a, b), result, len(each), limits, on=name, primary=len(sets) == 1)
             for name, a, b, result in each]  # fmt: skip
    if len(sets) > 1:
        over = compare_sets(sets, goal=asked.goal, margin=asked.margin, pairs=asked.pairs)
        on = f"{len(sets)} data sets"
        more = [_comparison(asked, (a, b), result, len(over), limits, on=on) for a, b, result in over]
        items = [*more, *items]
    designs = [_arm(arm, name, scores[arm], limits) for name, scores in sets.items() for arm in scores]
    total = sum(item.seeds for item in designs)
    primary = [item for item in items if item.primary]
    return Verdict(
        study=asked.name,
        question=_question(primary, asked),
        answer=answer(primary),
        data=listed([name for name in sets if name]) or "given scores",
        protocol="not known",
        metric=Metric(name=asked.metric, goal=asked.goal, split=""),
        margin=asked.margin,
        seeds=max(item.seeds for item in designs),
        planned=total,
        finished=total,
        ranking=_ranking(sets, items, asked.goal),
        designs=tuple(designs),
        comparisons=tuple(items),
        reported=(),
        claims=(),
        warnings=(
            *asked.notes,
            *filter(None, [ranges.outside(asked.metric, every, asked.margin)]),
            *flag_lines(_flags(items), MOST_NAMED),
            *([LATER] if any(_could_decide(item) for item in items) else []),
        ),
    )


def _could_decide(item: ComparisonResult) -> bool:
    """Whether it is undecided with enough runs: then this was a look."""
    return item.verdict == "undecided" and item.seeds >= statistics.least_seeds(1)


def _flags(items: Sequence[ComparisonResult]) -> list[tuple[ComparisonResult, str]]:
    fewer = "; ask fewer questions: --baseline ARM compares all arms with one, --pairs names them"
    every = [(item, flag) for item in items for flag in item.flags]
    few = "seeds are fewer than"
    return [(item, f"{flag}{fewer}" if few in flag and len(items) > 1 else flag) for item, flag in every]


def _ranking(sets: Mapping[str, Scores], items: Sequence[ComparisonResult], goal: Goal) -> tuple[RankedArm, ...]:
    """The arms in their order, where every pair was asked for and the runs are paired by seed."""
    (scores, *others), arms = sets.values(), {arm for item in items for arm in (item.a, item.b)}
    pairs = len(arms) * (len(arms) - 1) // 2
    if others or len(items) < pairs or any(item.test != "paired-t" for item in items):
        return ()
    return rank(scores, goal)


def _question(primary: Sequence[ComparisonResult], asked: TableQuestion) -> str:
    arms = dict.fromkeys(arm for item in primary for arm in (item.a, item.b))
    over = f" over {number_of(primary[0].seeds, 'data set')}" if primary[0].test == "wilcoxon" else ""
    if len(primary) == 1:
        return f"Is {primary[0].a} better than {primary[0].b} in {asked.metric}{over}?"
    baselines = {item.b for item in primary}
    if len(baselines) == 1:
        return f"Which of {len(arms) - 1} arms is better than {baselines.pop()} in {asked.metric}{over}?"
    return f"Which of {len(arms)} arms is better in {asked.metric}{over}?"


def answer(primary: Sequence[ComparisonResult], number: sentences.Number = sentences.four_decimals) -> str:
    """The comparison in words; of several, how many were decided, and how."""
    if len(primary) == 1:
        text = sentences.sentence(primary[0], number=number)
        if not primary[0].seeds_needed:
            return text
        return f"{text} It needs {sentences.more_seeds(primary[0], statistics.least_seeds(1))}."
    counts: Counter[str] = Counter(item.verdict for item in primary)
    parts = [f"{item.a} is better than {item.b}" if item.verdict == "a" else f"{item.b} is better than {item.a}"
             for item in primary if item.verdict in ("a", "b")]  # fmt: skip
    shown = f": {'; '.join(parts[:8])}{f'; and {len(parts) - 8} more' if len(parts) > 8 else ''}" if parts else ""
    different = counts["a"] + counts["b"]
    words = {"same": f"the same within ±{primary[0].margin:g}", "undecided": "undecided"}
    rest = ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key])
    return (
        f"Of {len(primary):,} comparisons, {different} found a better arm{shown}.{f' Others: {rest}.' if rest else ''}"
    )


def _comparison(
    asked: TableQuestion,
    arms: tuple[str, str],
    result: Compared,
    many: int,
    limits: ranges.Range,
    *,
    on: str,
    primary: bool = True,
) -> ComparisonResult:
    a, b = arms
    over = result.test == "wilcoxon"
    within = ranges.of_difference([limits], [limits])
    item = ComparisonResult(
        name=f"{a} vs {b}" + (f" {'over' if over else 'on'} {on}" if on else ""),
        group=f"{'over' if over else 'on'} {on}" if on else f"{a} vs {b}",
        kind="pair",
        primary=primary or over,
        a=a,
        b=b,
        sides=tuple(Side(arm=arm, setting={}, metric=asked.metric) for arm in arms),
        metric=asked.metric,
        margin=asked.margin,
        **measured(ranges.possible(result, within)),
        examples_low=None,
        examples_high=None,
        sentence="",
    )
    least = 0 if result.test == "welch" else statistics.least_seeds(many)
    return item.model_copy(update={"sentence": sentences.sentence(item, least=least)})


def _arm(arm: str, on: str, scores: Mapping[int | str, float], limits: ranges.Range) -> ArmResult:
    found = statistics.estimate(list(scores.values()))
    low, high = (ranges.cut(end, limits) for end in (found.low, found.high))
    return ArmResult(
        name=f"{arm} on {on}" if on else arm, design="", parameters=None, flops=None, setting={}, seeds=found.n,
        failed=0, missing=0, mean=found.mean, sd=found.sd, low=low, high=high, train_seconds=None,
    )  # fmt: skip
