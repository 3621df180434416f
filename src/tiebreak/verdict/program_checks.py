"""What the scores of a program give away: a seed that is ignored, a test set used for validation, per cents."""

from __future__ import annotations

from tiebreak.results.tally import Tally
from tiebreak.study.program_keys import PROGRAM
from tiebreak.study.schema import setting_label
from tiebreak.text import listed, number_of
from tiebreak.verdict.ranges import outside

LEAST_RUNS = 3  # fewer may agree by chance


def program_warnings(tally: Tally) -> list[str]:
    """The warnings about the runs of a program; none for other tasks."""
    if tally.study.task != PROGRAM:
        return []
    return [
        *_failed(tally),
        *_outside(tally),
        *_same_for_all_seeds(tally),
        *_validation_is_test(tally),
        *_outcomes_left_out(tally),
    ]


def _failed(tally: Tally) -> list[str]:
    found = [record for one in tally.plan.runs if (record := tally.records.runs.get(one)) is not None]
    many = sum(record.status == "failed" for record in found)
    if not many:
        return []
    return [f"{number_of(many, 'run')} failed; the same command tries them again (`tiebreak status` shows why)"]


def _outside(tally: Tally) -> list[str]:
    """Scores that the metric cannot have, at any setting."""
    study, lines = tally.study, []
    others = {item.metric: item.margin or study.margin for item in study.comparisons if item.metric is not None}
    for metric, margin in {study.metric: study.margin, **others}.items():
        scores = (
            (arm.name, score)
            for arm in study.arms
            for setting in study.settings(arm)
            for score in tally.scores(arm.name, setting, metric).values()
        )
        lines.append(outside(metric, scores, margin))
    return [line for line in lines if line]


def _same_for_all_seeds(tally: Tally) -> list[str]:
    metric, found = tally.study.metric, []
    for arm in tally.study.arms:
        for setting in tally.study.settings(arm):
            scores = list(tally.scores(arm.name, setting, metric).values())
            if len(scores) >= LEAST_RUNS and len(set(scores)) == 1:
                at = f" at {setting_label(setting)}" if setting else ""
                found.append(
                    f"{arm.name}: all {len(scores)} seeds give the same {metric}{at}: the program seems to ignore "
                    "{seed}, and its spread over seeds is not known"
                )
                break
    return found


def _validation_is_test(tally: Tally) -> list[str]:
    metric, runs, tuned = tally.study.metric, dict[str, int](), False
    for arm in tally.study.arms:
        pairs = []
        for setting in tally.study.settings(arm):
            val = tally.scores(arm.name, setting, f"val_{metric}")
            test = tally.scores(arm.name, setting, metric)
            pairs += [(val[seed], test[seed]) for seed in val.keys() & test.keys()]
        if pairs and all(val == test for val, test in pairs):
            runs[arm.name] = len(pairs)
            tuned |= len(tally.study.settings(arm)) > 1
    if sum(runs.values()) < LEAST_RUNS:
        return []
    chosen = "; the setting was chosen on test data" if tuned else ""
    many = f"{sum(runs.values())} runs"
    return [f"{listed([*runs])}: `val` equals `test` in all {many}: the program seems to use one set for both{chosen}"]


def _outcomes_left_out(tally: Tally) -> list[str]:
    reasons = [
        record.provenance["outcomes left out"]
        for identity in tally.plan.runs
        if (record := tally.records.runs.get(identity)) is not None and "outcomes left out" in record.provenance
    ]
    if not reasons:
        return []
    return [f"outcomes of {number_of(len(reasons), 'run')} were not used, such as: {reasons[0]}"]
