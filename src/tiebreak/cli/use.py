"""`tiebreak use DIR INPUT`: apply a trained run to one input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tiebreak import catalog
from tiebreak.api import Result, designs_are_code, open_result
from tiebreak.drive.recorder import resumable
from tiebreak.errors import TiebreakError, nearest
from tiebreak.files import inside
from tiebreak.models.design import SHAPES
from tiebreak.plan.resolve import complete
from tiebreak.plan.runs import Run
from tiebreak.results.manifest import DESIGNS_FILE
from tiebreak.results.store import Store
from tiebreak.results.tally import Tally
from tiebreak.streams import stream
from tiebreak.study import registry
from tiebreak.study.registry import Scalar
from tiebreak.study.rules import check_option
from tiebreak.tasks.interface import TrainedOn
from tiebreak.tasks.reply import Reply
from tiebreak.train import checkpoint
from tiebreak.train.step import initial_state
from tiebreak.verdict.sides import arm_scores, usable_scores


@dataclass(frozen=True)
class Used:
    """Which run answered, and its answers, most likely first."""

    arm: str
    run: Run
    reply: Reply


def use(
    folder: Path,
    given: str,
    *,
    arm: str | None = None,
    seed: int | None = None,
    how: Mapping[str, Scalar] | None = None,
    notify: Callable[[str], None] | None = None,
) -> Used:
    """Apply a trained run to the input `given`: by default the best run of the best arm, chosen on validation.

    `how` holds options of the task for this, such as the beam width. `notify` gets the line that the folder's designs
    are code, before they run.
    """
    result = open_result(folder)
    how = how or {}
    _check(how, result.study.task)
    tally = Tally(result.study, result.plan, result.records)
    name = arm or best_arm(result, tally)
    if name not in [each.name for each in result.study.arms]:
        raise TiebreakError(f"{folder}: no arm {name!r}; {nearest(name, [each.name for each in result.study.arms])}")
    run = chosen_run(result, tally, name, seed)
    family = registry.TASKS[run.task].family
    shape = SHAPES[family](**result.plan.arm(name).shape)
    own = str(inside(folder, DESIGNS_FILE)) if result.plan.designs_from is not None else None
    if own is not None and notify is not None and run.design not in registry.DESIGNS:
        notify(designs_are_code(own))
    network = catalog.find_design(run.design, own, family).network(shape, run.build, stream(run.seed, "init"))
    state = initial_state(network, run)
    with closing(Store.open(folder)) as store:
        records = [record for record in resumable(run, store.checkpoints()) if record.epoch == run.epochs]
    if not records:
        raise TiebreakError(f"{folder}: no checkpoint of {run.label}; `tiebreak run` makes it again")
    try:
        checkpoint.restore(folder, records[0], state)
    except TiebreakError as error:
        raise TiebreakError(f"{error}; `tiebreak run` makes it again") from None
    task = catalog.TASKS[run.task]
    known = result.plan.data
    trained_on = TrainedOn(
        shape=shape, vocabulary=known.vocabulary, options=run.options, data=run.data, front_end=known.front_end
    )
    return Used(name, run, task.answer(network.eval(), given, trained_on, complete(registry.TASKS[run.task].use, how)))


def _check(how: Mapping[str, Scalar], task: str) -> None:
    """Options are named as on the command line."""
    known = {f"--{name.replace('_', '-')}": option for name, option in registry.TASKS[task].use.items()}
    for name, value in how.items():
        spelled = f"--{name.replace('_', '-')}"
        if spelled not in known:
            have = f"it has {', '.join(known)}" if known else "it has none of its own"
            raise TiebreakError(f"{spelled}: not an option of the task {task}; {have}")
        try:
            check_option(spelled, value, known[spelled])
        except ValueError as error:
            raise TiebreakError(str(error)) from None


def best_arm(result: Result, tally: Tally) -> str:
    """The arm with the best mean on validation; the test set is for reporting, not for choosing."""
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
