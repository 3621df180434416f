"""What a study that goes on in a results folder must have in common with its runs; refused before it is written."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan
from tiebreak.results.record import Precision
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.results.stored_study import stored_study
from tiebreak.study.program_keys import PROGRAM
from tiebreak.study.schema import Study
from tiebreak.text import listed


def refuse_mixed(study: Study, plan: Plan, folder: Path, precision: Precision | None) -> None:
    """Refuse another precision than that of the plan's stored runs, and a metric that a program did not write."""
    if not (folder / STORE_FILE).is_file():
        return
    with closing(Store.open(folder)) as store:
        if precision is not None:
            _refuse_other_precision(store, plan, folder, precision)
        if study.task == PROGRAM:
            _refuse_missing_metrics(store, study, plan, folder)


def _refuse_other_precision(store: Store, plan: Plan, folder: Path, precision: Precision) -> None:
    runs = store.training_state().runs
    free = {identity for identity, run in plan.runs.items() if run.precision is None}  # others: whatever the option
    kept = [run for identity, run in runs.items() if identity in free and run.status != "failed"]
    labels = [run.provenance.get("device", "") for run in kept]
    stored = {label.partition(", ")[2] or "float32" for label in labels if label}
    if others := sorted(stored - {precision}):
        advice = "leave out --precision" if others == ["float32"] else f"add --precision {others[0]}"
        raise TiebreakError(
            f"{folder}: its runs are in {' and '.join(others)}, and --precision {precision} would be compared with"
            f" them; {advice}, or give another folder with --out"
        )


def _refuse_missing_metrics(store: Store, study: Study, plan: Plan, folder: Path) -> None:
    before = stored_study(folder)
    asked = _metrics(study)
    if before is not None and asked <= _metrics(before):
        return
    finals = store.records().finals
    for identity in plan.runs.keys() & finals.keys():
        for final in finals[identity].values():
            if lacking := sorted(asked - final.metrics.keys()):
                raise TiebreakError(
                    f"{folder}: its runs have no test score {lacking[0]!r}, but {listed(sorted(final.metrics))}; ask"
                    " for one of these, or have the program write it and give another folder with --out"
                )


def _metrics(study: Study) -> set[str]:
    return {study.metric, *(item.metric for item in study.comparisons if item.metric is not None)}
