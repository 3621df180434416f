"""Every planned run as one row of plain values: for a table of all seeds, in a notebook or elsewhere."""

from __future__ import annotations

from typing import Any

from tiebreak.errors import TiebreakError
from tiebreak.results.tally import Tally
from tiebreak.study.program_keys import PROGRAM

Row = dict[str, str | int | float | bool | None]


def score_rows(tally: Tally) -> list[Row]:
    """A row for each arm, setting and seed: how the run ended, its hyper-parameters of the grid, all its scores.

    Scores have the names of the metrics, on test data; with `val_` on validation data after the last epoch. What was
    not recorded is None. `chosen` marks the setting that validation chose for the arm.
    """
    study, rows = tally.study, []
    metrics = tuple(study.entry.metrics)
    if study.task == PROGRAM:  # all that it reported, whatever it is called
        finals = [final for one in tally.plan.runs for final in tally.records.finals.get(one, {}).values()]
        metrics = tuple(dict.fromkeys(name for final in finals for name in final.metrics if name[:4] != "val_"))
    for arm in study.arms:
        chosen = tally.chosen(arm.name)
        for setting in study.settings(arm):
            names = (*metrics, *(f"val_{name}" for name in metrics), "train_loss")
            found = {name: tally.known_scores(arm.name, setting, name) for name in names}
            for seed in range(study.seeds):
                row: Row = {"arm": arm.name, "design": arm.design, **setting, "seed": seed}
                row |= {"status": tally.status(arm.name, setting, seed), "chosen": dict(setting) == chosen}
                rows.append(row | {name: scores.get(seed) for name, scores in found.items()})
    return rows


def to_frame(rows: list[Row]) -> Any:
    """The rows as a pandas DataFrame."""
    try:
        import pandas  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise TiebreakError(
            "result.frame() needs pandas: `pip install pandas`; result.rows has the same without it"
        ) from None
    return pandas.DataFrame(rows)
