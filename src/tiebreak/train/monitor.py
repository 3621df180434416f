"""What the validation scores of a run decide: when it stops, which epoch's weights are evaluated, when the rate falls.

`State.monitor` holds four numbers: the best score, its epoch, the epochs in a row without a better one since the last
reduction, and the factor that the schedule `plateau` has reached. They are saved with the run, so that a resumed run
decides what an uninterrupted one would, and they are each run's own, so that a cohort decides run by run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from torch import Tensor

from tiebreak.plan.runs import Run
from tiebreak.results.record import EVALUATED_EPOCH
from tiebreak.train.step import BAD_EPOCHS, BEST, BEST_EPOCH, REDUCTION, State


def observe(run: Run, state: State, score: float) -> None:
    """Take note of the validation score of the epoch that the run has just been trained for."""
    if run.monitor is None or state.monitor is None:
        return
    seen = state.monitor
    best = float(seen[BEST])
    if math.isnan(best) or (score > best if run.monitor.goal == "max" else score < best):
        seen[BEST], seen[BEST_EPOCH], seen[BAD_EPOCHS] = score, state.epoch, 0
        for name, values in state.best.items():
            values.copy_(_evaluated(state)[name])
    else:
        seen[BAD_EPOCHS] += 1
    schedule = run.optimiser.schedule
    if schedule.kind == "plateau" and seen[BAD_EPOCHS] > (schedule.patience or 0):
        seen[REDUCTION] *= schedule.factor or 1.0
        seen[BAD_EPOCHS] = 0


def observe_all(
    runs: Mapping[int, Run], states: Sequence[State], metrics: Mapping[int, Mapping[str, float]]
) -> list[int]:
    """Show every run of a cohort its validation score. Returns the rows of the runs that stop here.

    The row of a stopped run is still computed, and ignored: its state is saved at once, and what is evaluated at the
    end are the weights of its best epoch, which do not change any more.
    """
    stopping = []
    for row, run in runs.items():
        if run.monitor is not None:
            observe(run, states[row], metrics[row][f"val_{run.monitor.metric}"])
            if stopped(run, states[row]):
                stopping.append(row)
    return stopping


def stopped(run: Run, state: State) -> bool:
    """Whether the run has been trained for `patience` epochs without a better validation score."""
    if run.monitor is None or state.monitor is None or not run.monitor.patience:
        return False
    return state.epoch - int(state.monitor[BEST_EPOCH]) >= run.monitor.patience


def epochs_left(run: Run, state: State) -> int:
    """How many epochs the run has still to be trained for, at most."""
    return 0 if stopped(run, state) else run.epochs - state.epoch


def early_stopping(run: Run, state: State, last_epoch: int) -> dict[str, str]:
    """For a run's record: which epoch's weights are evaluated, and where the run stopped if validation stopped it."""
    if not state.best or state.monitor is None:
        return {}
    found = {EVALUATED_EPOCH: str(int(state.monitor[BEST_EPOCH]))}
    return {**found, "stopped_epoch": str(last_epoch)} if stopped(run, state) else found


def load_evaluated(state: State) -> None:
    """Put the weights that are evaluated into the network: those of the best epoch, or averaged ones.

    Training cannot go on from there.
    """
    for name, values in (state.best or _evaluated(state)).items():
        _tensors(state)[name].copy_(values)
        if name in state.averages:
            state.averages[name].copy_(values)


def _evaluated(state: State) -> dict[str, Tensor]:
    """The weights that are evaluated now, with the buffers."""
    return {**_tensors(state), **state.averages}


def _tensors(state: State) -> dict[str, Tensor]:
    return {**state.params, **state.buffers}
