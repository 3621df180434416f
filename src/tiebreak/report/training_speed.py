"""How the runs of each cohort were trained, and how fast. Imports little: `status` should answer at once."""

from __future__ import annotations

from collections import Counter
from statistics import median

from tiebreak.plan.runs import Plan, cohort_names, cohorts
from tiebreak.results.record import Choice, RunRecord, TrainingState
from tiebreak.text import number_of, rounded

SPEED = ("strategy", "runs", "ms_per_step")  # of a run's provenance: reported by cohort, not by value


def training_rows(plan: Plan, state: TrainingState) -> list[tuple[str, str]]:
    """How the runs of each cohort were trained and how fast, or will be; nothing where nothing is known."""
    groups = cohorts(plan.runs.values())
    names_of = {id(run): identity for identity, run in plan.runs.items()}  # the plan knows them: hashes take time
    rows = []
    for key, name in cohort_names(groups).items():
        ended = [state.runs[names_of[id(run)]] for run in groups[key] if names_of[id(run)] in state.runs]
        ways: dict[tuple[str, str], list[RunRecord]] = {}
        for record in ended:
            if all(name in record.provenance for name in SPEED):
                ways.setdefault((record.provenance["strategy"], record.provenance["device"]), []).append(record)
        texts = [
            (f"{number_of(len(some), 'run')} " if len(ways) > 1 else "")
            + _trained(strategy, some, state.choices.get((key, device)))
            for (strategy, device), some in ways.items()
        ]
        if not ways:
            texts = [_measured(choice) for (cohort, _), choice in state.choices.items() if cohort == key]
        if texts:
            rows.append((name, "; ".join(texts)))
    return rows


def _trained(strategy: str, records: list[RunRecord], choice: Choice | None) -> str:
    """One way in which runs of a cohort were trained, with what was measured of the other."""
    at_once = Counter(int(record.provenance["runs"]) for record in records)
    speed = median(float(record.provenance["ms_per_step"]) / int(record.provenance["runs"]) for record in records)
    if strategy == "fused":
        low, high = min(at_once), max(at_once)
        some = number_of(high, "run") if low == high else f"{low} to {high} runs"
        other = f"; in a loop, timed alone, {rounded(choice.loop_ms)} ms" if choice is not None else ""
        return f"fused, {some} at once, {rounded(speed)} ms a step and run{other}"
    if choice is not None and choice.reason:
        other = f"; cannot be fused: {choice.reason}"
    else:
        other = f"; fused {rounded(choice.fused_ms)} ms" if choice is not None and choice.fused_ms else ""
    how = "one after the other as CUDA graphs" if strategy == "captured" else "one after the other"
    return f"{how}, {rounded(speed)} ms a step{other}"


def _measured(choice: Choice) -> str:
    """What was measured before the first run of a cohort ended."""
    if choice.fused_ms is None:
        return f"one after the other{f': cannot be fused: {choice.reason}' if choice.reason else ''}"
    alone = "one after the other as CUDA graphs" if choice.strategy == "captured" else "one after the other"
    how = "fused" if choice.strategy == "fused" else alone
    return f"{how} (timed: fused {rounded(choice.fused_ms)} ms a step and run, in a loop {rounded(choice.loop_ms)} ms)"
