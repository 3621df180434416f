"""The trained networks of a results folder: which one stands for an arm, and the network itself as an nn.Module.

Chosen on validation; the test set is for reporting, not for choosing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tiebreak.api import open_result
from tiebreak.errors import TiebreakError, nearest
from tiebreak.files import inside
from tiebreak.plan.runs import Run
from tiebreak.results.record import PROGRAM_RUNS
from tiebreak.results.store import Store
from tiebreak.results.tally import Tally
from tiebreak.streams import stream
from tiebreak.study import registry
from tiebreak.study.design_file import DESIGNS_FILE, designs_are_code
from tiebreak.study_result import Result
from tiebreak.verdict.sides import arm_scores, usable_scores

if TYPE_CHECKING:
    from torch import nn

    from tiebreak.models.design import Shape


@dataclass(frozen=True)
class Trained:
    """A trained network: the arm and the run that it is of, and what it was built for."""

    arm: str
    run: Run
    network: nn.Module
    shape: Shape


def load_network(folder: str | Path, arm: str | None = None, seed: int | None = None) -> nn.Module:
    """The trained network of an arm at its chosen setting, in evaluation mode, on the CPU.

    Without `arm` that of the best arm, without `seed` that of the best seed, both on validation. Designs of your own
    are code: that of the results folder is run.
    """
    return load_trained(open_result(Path(folder)), arm, seed).network


def load_trained(
    result: Result, arm: str | None = None, seed: int | None = None, notify: Callable[[str], None] | None = None
) -> Trained:
    """The same with its run. `notify` gets the line that the folder's designs are code, before they run."""
    from tiebreak import catalog
    from tiebreak.drive.recorder import resumable
    from tiebreak.models.design import shape_of
    from tiebreak.train import checkpoint
    from tiebreak.train.monitor import load_evaluated
    from tiebreak.train.step import initial_state

    folder = result.folder
    if result.study.program is not None:
        raise TiebreakError(f"{folder}: the networks of a program are its own; see {PROGRAM_RUNS}/ for what it left")
    tally = Tally(result.study, result.plan, result.records)
    name = arm or best_arm(result, tally)
    if name not in [each.name for each in result.study.arms]:
        raise TiebreakError(f"{folder}: no arm {name!r}; {nearest(name, [each.name for each in result.study.arms])}")
    run = chosen_run(result, tally, name, seed)
    family = registry.family_of(run.task)
    shape = shape_of(family, result.plan.arm(name).shape)
    own = design_copy(result)
    if own is not None and notify is not None and run.design not in registry.DESIGNS:
        notify(designs_are_code(own))
    network = catalog.find_design(run.design, own, family).network(shape, run.build, stream(run.seed, "init"))
    if run.precision == "float64":
        network.double()  # as its checkpoint is
    state = initial_state(network, run)
    with closing(Store.open(folder)) as store:
        kept = store.checkpoints()
    last = result.records.runs[run.identity].epoch
    records = [record for record in resumable(run, kept) if record.epoch == last]
    if not records and any(record.pruned for record in kept if record.trajectory == run.trajectory):
        raise TiebreakError(f"{folder}: the checkpoint of {run.label} was removed by `tiebreak prune`; choose another")
    if not records:
        raise TiebreakError(f"{folder}: no checkpoint of {run.label}; `tiebreak run` makes it again")
    try:
        checkpoint.restore(folder, records[0], state)
    except TiebreakError as error:
        raise TiebreakError(f"{error}; `tiebreak run` makes it again") from None
    load_evaluated(state)
    if run.precision == "float64":
        network.float()  # inputs are float32
    return Trained(name, run, network.eval(), shape)


def design_copy(result: Result) -> str | None:
    """The copy of the user's design file in a results folder; None where the study has none."""
    return str(inside(result.folder, DESIGNS_FILE)) if result.plan.designs_from is not None else None


def best_arm(result: Result, tally: Tally) -> str:
    """The arm with the best mean on validation."""
    sign = 1 if result.study.goal() == "max" else -1
    means = {}
    for arm in result.study.arms:
        scores = arm_scores(tally, arm.name, tally.chosen(arm.name), f"val_{result.study.metric}")
        if scores:
            means[arm.name] = sign * sum(scores.values()) / len(scores)
    if not means:
        raise TiebreakError(f"{result.folder}: no finished run with a finite score yet; `tiebreak run` trains them")
    return max(means, key=lambda name: means[name])


def chosen_run(result: Result, tally: Tally, arm: str, seed: int | None) -> Run:
    """The arm's run at its chosen setting: that of `seed`, or the best on validation."""
    setting = tally.chosen(arm)
    scores = tally.scores(arm, setting, f"val_{result.study.metric}")
    if not scores:
        raise TiebreakError(f"{result.folder}: arm {arm!r} has no finished run yet; `tiebreak run` trains them")
    if seed is not None and seed not in scores:
        raise TiebreakError(
            f"{result.folder}: arm {arm!r} has no finished run of seed {seed}; there are {sorted(scores)}"
        )
    sign = 1 if result.study.goal() == "max" else -1
    comparable = usable_scores(scores) or scores
    best = seed if seed is not None else max(comparable, key=lambda each: sign * comparable[each])
    return result.plan.runs[result.plan.arm(arm).run(setting, best)]
