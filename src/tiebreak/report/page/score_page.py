"""The report on a table of scores: the page of a study without what only a plan and records could say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiebreak import files
from tiebreak.plan.runs import digest
from tiebreak.report import formatting
from tiebreak.report.evidence import Sides
from tiebreak.report.figures import main_figures
from tiebreak.report.figures.drawing import Legend
from tiebreak.report.page import document
from tiebreak.report.page.meaning import meaning
from tiebreak.report.page.metric_table import directed
from tiebreak.report.page.tables import SettingRow
from tiebreak.report.page.view import tiebreak_version
from tiebreak.verdict import ranges, sentences
from tiebreak.verdict.model import ComparisonResult, Verdict
from tiebreak.verdict.ranking import too_few_to_rank
from tiebreak.verdict.scores import Scores
from tiebreak.verdict.table_verdict import answer

MOST_DRAWN = 8  # comparisons with figures of their own
MOST_COLUMNS = 12  # arms side by side in a table of seeds
NONE = "–"


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """One arm on one data set, as text."""

    name: str
    index: int
    mean: str
    deviation: str
    interval: str
    runs: str


@dataclass(frozen=True, kw_only=True)
class TestRow:
    """One comparison, as text."""

    __test__ = False  # not a class of tests

    name: str
    primary: bool
    decided: bool
    outcome: str
    difference: str
    interval: str
    over: str
    p: str
    p_adjusted: str
    p_exact: str
    p_a_better: str
    needed: str


def write_score_report(folder: Path, verdict: Verdict, sets: Mapping[str, Scores]) -> Path:
    """Write report.md and report.html into `folder`; the path of the page."""
    values = content(verdict, sets)
    text = document._markdown_environment().get_template("scores.md.jinja").render(**values)
    files.write(folder / document.MARKDOWN_FILE, re.sub(r"\n{3,}", "\n\n", text).strip() + "\n")
    return files.write(folder / document.HTML_FILE, html(verdict, sets))


def html(verdict: Verdict, sets: Mapping[str, Scores]) -> str:
    """The page: one file that needs no other, and no network."""
    values = content(verdict, sets, formatting.signed_minus) | figures(verdict, sets)
    css = (Path(document.__file__).parent / "page.css").read_text("utf-8")
    inputs = digest([verdict.model_dump(mode="json"), {name: _plain(scores) for name, scores in sets.items()}])
    return document._environment().get_template("scores.html.jinja").render(**values, css=css, inputs=inputs)


def _plain(scores: Scores) -> dict[str, list[tuple[str, float]]]:
    return {arm: [(str(seed), score) for seed, score in own.items()] for arm, own in scores.items()}


def content(
    verdict: Verdict, sets: Mapping[str, Scores], number: sentences.Number = formatting.signed
) -> dict[str, Any]:
    """The text and the tables of the report."""
    primary = [item for item in verdict.comparisons if item.primary]
    undecided = any(item.verdict == "undecided" for item in primary)
    over = sum(item.test == "wilcoxon" for item in verdict.comparisons)
    return {
        "version": tiebreak_version(),
        "verdict": verdict,
        "unranked": too_few_to_rank(verdict.seeds, len(verdict.ranking)),
        "quantity": directed(verdict.metric.name, verdict.metric.goal),
        "answer": answer(primary, number),
        "meaning": meaning(primary[:1]) if len(primary) == 1 else "",
        "badge": formatting.outcome(primary[0]) if len(primary) == 1 else _decided(primary),
        "outcome": primary[0].verdict if len(primary) == 1 else "undecided" if undecided else "a",
        "arms": _arm_rows(verdict, sets),
        "comparisons": [_test_row(item) for item in verdict.comparisons],
        "sentences": [
            (item.name, sentences.sentence(item, number=number)) for item in verdict.comparisons[:MOST_DRAWN]
        ],
        "tests": {item.test for item in verdict.comparisons},
        "over": over,
        "each": len(verdict.comparisons) - over,
        "seed_tables": [_seed_table(name, scores) for name, scores in sets.items()],
        "warnings": verdict.warnings,
        "headings": {
            "arms": "What was compared",
            "comparisons": "Comparisons",
            "runs": "Every run",
            "provenance": "Where the numbers come from",
        },
    }


def _decided(primary: Sequence[ComparisonResult]) -> str:
    return f"{sum(item.verdict != 'undecided' for item in primary)} of {len(primary):,} decided"


def _arm_rows(verdict: Verdict, sets: Mapping[str, Scores]) -> list[ScoreRow]:
    places = {arm: place for place, arm in enumerate(dict.fromkeys(arm for scores in sets.values() for arm in scores))}
    arms = [arm for scores in sets.values() for arm in scores]
    return [
        ScoreRow(
            name=item.name,
            index=places[arm],
            mean=formatting.score(item.mean),
            deviation=NONE if item.sd is None else formatting.score(item.sd),
            interval=NONE if item.low is None else formatting.interval(item.low, item.high),
            runs=str(item.seeds),
        )
        for arm, item in zip(arms, verdict.designs, strict=True)
    ]


def _test_row(item: ComparisonResult) -> TestRow:
    exact = item.p_permutation if item.test == "welch" else item.p_sign_flip
    return TestRow(
        name=item.name,
        primary=item.primary,
        decided=item.verdict != "undecided",
        outcome=formatting.outcome(item),
        difference=formatting.signed(item.difference),
        interval=NONE if item.low is None else formatting.open_interval(item.low, item.high),
        over=sentences.replicates(item),
        p=NONE if item.p is None else formatting.p_value(item.p),
        p_adjusted=NONE if item.p_adjusted is None else formatting.p_value(item.p_adjusted),
        p_exact=NONE if exact is None else formatting.p_value(exact),
        p_a_better=NONE if item.p_a_better is None else formatting.chance(item.p_a_better),
        needed=NONE if item.test == "wilcoxon" else formatting.seeds_needed(item),
    )


def _seed_table(name: str, scores: Scores) -> dict[str, Any]:
    """Every score of a data set: a row for each seed, or for many arms a row for each arm."""
    seeds = list(dict.fromkeys(seed for own in scores.values() for seed in own))
    if len(scores) <= MOST_COLUMNS:
        rows = [
            (str(seed), [formatting.score(own[seed]) if seed in own else NONE for own in scores.values()])
            for seed in seeds
        ]
        return {"name": name, "head": ["Seed", *scores], "rows": rows}
    rows = [(arm, [", ".join(f"{seed}: {formatting.score(value)}" for seed, value in own.items())])
            for arm, own in scores.items()]  # fmt: skip
    return {"name": name, "head": ["Arm", "Seed: score"], "rows": rows}


def figures(verdict: Verdict, sets: Mapping[str, Scores]) -> dict[str, Any]:
    """The figures of the page with their legends."""
    arms = list(dict.fromkeys(arm for scores in sets.values() for arm in scores))
    primary = [item for item in verdict.comparisons if item.primary][:MOST_DRAWN]
    quantity = directed(verdict.metric.name, verdict.metric.goal)
    rows = [
        SettingRow(
            arm=arm, index=arms.index(arm), setting=name or "all runs", chosen=True, mean=found.mean,
            mean_text=formatting.score(found.mean), runs=str(found.seeds), scores=tuple(own.values()),
        )
        for (name, arm, own), found in zip(
            ((name, arm, own) for name, scores in sets.items() for arm, own in scores.items()),
            verdict.designs,
            strict=True,
        )
    ]  # fmt: skip
    return {
        "mains": [_main(verdict, sets, item, number) for number, item in enumerate(primary)],
        "run_grid": main_figures.setting_grid(rows, quantity=quantity) if len(rows) <= 60 else "",
        "run_dots": sum(len(row.scores) for row in rows) <= main_figures.MOST_DOTS,
        "legend": [Legend(index=place, text=arm) for place, arm in enumerate(arms)],
    }


def _main(verdict: Verdict, sets: Mapping[str, Scores], item: ComparisonResult, number: int) -> dict[str, Any]:
    """A comparison with its figures: the difference, and the seeds of both arms where they are paired."""
    every = (score for scores in sets.values() for own in scores.values() for score in own.values())
    goal, limits = verdict.metric.goal, ranges.range_of_scores(verdict.metric.name, every)
    sides = _sides(sets, item, limits)
    differences = [a - b for a, b in sides.pairs.values()] if item.test != "welch" else []
    bars = [
        main_figures.difference_bar(item, name=f"{size}-{number}", goal=goal, by_seed=differences, width=width)
        for size, width in (("narrow", main_figures.NARROW), ("wide", main_figures.WIDE))
    ]
    paired = item.test == "paired-t" and len(sides.pairs) > 1
    quantity = directed(verdict.metric.name, goal)
    return {
        "item": item,
        "row": _test_row(item),
        "subtraction": formatting.subtraction(item),
        "narrow": bars[0],
        "wide": bars[1],
        "dots": 0 < len(differences) <= main_figures.MOST_DOTS,
        "pairs": main_figures.paired_seeds(sides, name=f"pairs-{number}", quantity=quantity) if paired else "",
    }


def _sides(sets: Mapping[str, Scores], item: ComparisonResult, limits: ranges.Range) -> Sides:
    """Both arms by the place of the seed, or by the place of the data set."""
    if item.test == "wilcoxon":
        means = [[sum(own.values()) / len(own) for own in (scores[item.a], scores[item.b])] for scores in sets.values()]
        a, b = ({place: pair[side] for place, pair in enumerate(means)} for side in (0, 1))
    else:
        first = next(iter(sets.values()))
        seeds = [seed for seed in first[item.a] if seed in first[item.b]]
        a, b = ({place: first[arm][seed] for place, seed in enumerate(seeds)} for arm in (item.a, item.b))
    arms = list(dict.fromkeys(arm for scores in sets.values() for arm in scores))
    places = arms.index(item.a), arms.index(item.b)
    return Sides(names=(item.a, item.b), places=places, scores=(a, b), limits=(limits, limits))
