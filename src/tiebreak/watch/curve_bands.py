"""Learning curves while they grow: the mean over seeds at each epoch, with its 95 % interval, thinned for a screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiebreak.results.record import EpochRecord
from tiebreak.results.tally import Tally
from tiebreak.study.program_keys import PROGRAM
from tiebreak.study.schema import setting_label
from tiebreak.verdict import ranges
from tiebreak.verdict.power import quantile
from tiebreak.verdict.statistics import LARGEST

MOST_CURVES = 40
MOST_POINTS = 200


def curves_of(tally: Tally) -> list[dict[str, Any]]:
    """The score on validation data and the training loss of each arm, at the setting that is chosen so far.

    Arms of the primary comparison come first; an arm without runs of its own has none. Runs that diverged or failed
    are left out, runs that are being trained are in.
    """
    study, found = tally.study, list[dict[str, Any]]()
    keys = [f"val_{study.metric}"] if study.task == PROGRAM else [f"val_{study.metric}", "train_loss"]
    for arm in _arms(tally):
        setting = tally.chosen(arm)
        runs = [_epochs(tally, identity) for _, identity in tally.runs(arm, setting)]
        for key in keys:
            if len(found) == MOST_CURVES:
                return found
            curve = _curve([run for run in runs if run], key, study.task)
            if curve["epochs"]:
                split, _, metric = key.partition("_")
                found.append({"arm": arm, "setting": setting_label(setting), "metric": metric, "split": split, **curve})
    return found


def _arms(tally: Tally) -> list[str]:
    primary = next((item.arms() for item in tally.study.comparisons if item.primary), ())
    every, taken, found = [*primary, *(arm.name for arm in tally.study.arms)], set[frozenset[str]](), []
    for name in dict.fromkeys(every):
        runs = frozenset(tally.plan.arm(name).runs.values())
        if runs not in taken:  # an arm that is only evaluated in another way has the same curves
            taken.add(runs)
            found.append(name)
    return found


def _epochs(tally: Tally, identity: str) -> Mapping[int, EpochRecord]:
    record = tally.records.runs.get(identity)
    if record is not None and record.status != "done":
        return {}
    run = tally.plan.runs[identity]
    stored = tally.records.epochs.get(run.trajectory, {})
    return {epoch: each for epoch, each in stored.items() if epoch <= run.most_epochs}


def _curve(runs: Sequence[Mapping[int, EpochRecord]], key: str, task: str) -> dict[str, Any]:
    epochs = _thinned(sorted({epoch for run in runs for epoch in run}))
    scores = np.array(
        [[run[epoch].metrics.get(key, np.nan) if epoch in run else np.nan for epoch in epochs] for run in runs],
        dtype=np.float64,
    ).reshape(len(runs), len(epochs))
    scores[~(np.abs(scores) <= LARGEST)] = np.nan
    known = np.isfinite(scores).sum(axis=0)
    there = known > 0
    mean, low, high = _bands(scores[:, there], known[there], ranges.range_of(key, task))
    return {
        "n": int(known.max(initial=0)),
        "epochs": [epoch for epoch, shown in zip(epochs, there, strict=True) if shown],
        **{name: _rounded(values) for name, values in (("mean", mean), ("low", low), ("high", high))},
    }


def _bands(
    scores: NDArray[np.float64], known: NDArray[np.int64], within: ranges.Range
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean and Student's t interval of each column; of a single score, the score itself."""
    mean = np.nansum(scores, axis=0) / known
    spread = np.nansum((scores - mean) ** 2, axis=0)
    width = {n: -quantile(n, 0.025) if n > 1 else 0.0 for n in set(known.tolist())}
    factor = np.array([width[n] for n in known.tolist()])
    half = factor * np.sqrt(spread / np.maximum(known - 1, 1) / known)
    return mean, np.clip(mean - half, *within), np.clip(mean + half, *within)


def _thinned(epochs: list[int]) -> list[int]:
    if len(epochs) <= MOST_POINTS:
        return epochs
    places = np.unique(np.linspace(0, len(epochs) - 1, MOST_POINTS).round().astype(int))
    return [epochs[place] for place in places.tolist()]


def _rounded(values: NDArray[np.float64]) -> list[float]:
    return [float(f"{value:.5g}") for value in values.tolist()]
