"""What is exported of a results folder, or of the folder of `tiebreak compare --out`: rows of numbers, and the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tiebreak.plan.runs import Plan
from tiebreak.report.evidence import Evidence
from tiebreak.report.page import document, score_page
from tiebreak.results.record import Records
from tiebreak.study.schema import Study, setting_label
from tiebreak.text import number_of
from tiebreak.verdict.model import Verdict
from tiebreak.verdict.scores import Scores
from tiebreak.verdict.sentences import answer
from tiebreak.verdict.statistics import usable

Value = str | int | float | None
Row = dict[str, Value]


@dataclass(frozen=True, kw_only=True)
class ExportContent:
    """The verdict, every score behind it, and how the report's page is drawn."""

    verdict: Verdict
    answer: str  # the verdict's, without advice on what to run
    scores: Sequence[Row]
    page: Callable[[], str]
    names: Sequence[str]  # of the arms, in the order that decides their colours

    @property
    def quantity(self) -> str:
        """What the arms are scored by, in words."""
        metric = self.verdict.metric
        return f"{metric.split} {metric.name}".replace("_", " ").strip()

    @property
    def families(self) -> str:
        """The comparisons that Holm's correction counts together, in words: those over data sets are apart."""
        over = sum(item.test == "wilcoxon" for item in self.verdict.comparisons)
        every = number_of(len(self.verdict.comparisons) - over, "comparison")
        return f"{every} on single data sets and, apart from these, for the {over} over data sets" if over else every

    @property
    def label(self) -> str:
        """A short name for files and references: letters, digits and hyphens."""
        return re.sub(r"[^a-z0-9]+", "-", self.verdict.study.lower()).strip("-") or "study"

    def arms(self) -> list[Row]:
        """A row for each arm; ± and intervals are over seeds."""
        return [
            {
                "arm": item.name,
                "setting": setting_label(item.setting) if item.setting else "",
                "metric": self.verdict.metric.name,
                "mean": item.mean,
                "standard_deviation": item.sd,
                "low": item.low,
                "high": item.high,
                "seeds": item.seeds,
                "failed": item.failed,
                "parameters": item.parameters,
                "flops": item.flops,
                "train_seconds": item.train_seconds,
            }
            for item in self.verdict.designs
        ]

    def comparisons(self) -> list[Row]:
        """A row for each comparison."""
        keys = [
            *("name", "a", "b", "metric", "margin", "difference", "low", "high", "p", "p_adjusted", "p_sign_flip"),
            *("p_permutation", "p_a_better", "verdict", "seeds", "seeds_needed", "test", "sentence"),
        ]
        return [{key: getattr(item, key) for key in keys} for item in self.verdict.comparisons]


def of_study(study: Study, plan: Plan, records: Records, verdict: Verdict) -> ExportContent:
    """The content of a results folder: every test metric of every run at the arm's chosen setting."""
    evidence = Evidence(study=study, plan=plan, records=records, verdict=verdict)
    rows: list[Row] = []
    for arm in study.arms:
        setting, evaluation = evidence.chosen(arm.name), plan.arm(arm.name).evaluation
        for seed, identity in evidence.identities(arm.name):
            final = records.finals.get(identity, {}).get(evaluation)
            if final is not None and evidence.status(identity) == "done":
                label = setting_label(setting) if setting else ""
                rows += [
                    {"arm": arm.name, "setting": label, "seed": seed, "metric": metric, "score": score}
                    for metric, score in final.metrics.items()
                    if usable(score)
                ]
    names = [arm.name for arm in study.arms]
    return ExportContent(
        verdict=verdict,
        answer=answer(
            verdict.comparisons,
            seeds=verdict.seeds,
            complete=verdict.finished == verdict.planned,
            stopping=verdict.stopping,
            advice=False,
        ),
        scores=rows,
        page=lambda: document.html(study, plan, records, verdict),
        names=names,
    )


def of_scores(verdict: Verdict, sets: Mapping[str, Scores]) -> ExportContent:
    """The content of a compared table."""
    several = any(sets)
    rows: list[Row] = [
        {
            **({"dataset": name} if several else {}),
            "arm": arm,
            "seed": seed,
            "metric": verdict.metric.name,
            "score": score,
        }
        for name, scores in sets.items()
        for arm, own in scores.items()
        for seed, score in own.items()
    ]
    names = list(dict.fromkeys(arm for scores in sets.values() for arm in scores))
    return ExportContent(
        verdict=verdict,
        answer=verdict.answer,
        scores=rows,
        page=lambda: score_page.html(verdict, sets),
        names=names,
    )
