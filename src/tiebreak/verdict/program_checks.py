"""What the scores of a program give away: a seed that is ignored, a test set that was used for validation."""

from __future__ import annotations

from tiebreak.results.tally import Tally
from tiebreak.study.program_keys import PROGRAM
from tiebreak.study.schema import setting_label
from tiebreak.text import number_of

LEAST_RUNS = 3  # fewer may agree by chance


def program_warnings(tally: Tally) -> list[str]:
    """The warnings about the runs of a program; none for other tasks."""
    if tally.study.task != PROGRAM:
        return []
    return [*_failed(tally), *_same_for_all_seeds(tally), *_validation_is_test(tally), *_outcomes_left_out(tally)]


def _failed(tally: Tally) -> list[str]:
    found = [record for one in tally.plan.runs if (record := tally.records.runs.get(one)) is not None]
    many = sum(record.status == "failed" for record in found)
    if not many:
        return []
    return [f"{number_of(many, 'run')} failed; the same command tries them again (`tiebreak status` shows why)"]


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
    metric, pairs = tally.study.metric, []
    for arm in tally.study.arms:
        for setting in tally.study.settings(arm):
            val = tally.scores(arm.name, setting, f"val_{metric}")
            test = tally.scores(arm.name, setting, metric)
            pairs += [(val[seed], test[seed]) for seed in val.keys() & test.keys()]
    if len(pairs) < LEAST_RUNS or any(val != test for val, test in pairs):
        return []
    tuned = any(len(tally.study.settings(arm)) > 1 for arm in tally.study.arms)
    chosen = "; the setting was chosen on test data" if tuned else ""
    many = number_of(len(pairs), "run")
    return [f"`val` equals `test` in all {many}: the program seems to use one set for both{chosen}"]


def _outcomes_left_out(tally: Tally) -> list[str]:
    reasons = [
        record.provenance["outcomes left out"]
        for identity in tally.plan.runs
        if (record := tally.records.runs.get(identity)) is not None and "outcomes left out" in record.provenance
    ]
    if not reasons:
        return []
    return [f"outcomes of {number_of(len(reasons), 'run')} were not used, such as: {reasons[0]}"]
