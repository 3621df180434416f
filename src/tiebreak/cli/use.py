"""`tiebreak use DIR INPUT`: apply a trained run to one input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tiebreak import catalog
from tiebreak.api import open_result
from tiebreak.cli.run_choice import best_arm, chosen_run
from tiebreak.drive.recorder import resumable
from tiebreak.errors import TiebreakError, nearest
from tiebreak.files import inside
from tiebreak.models.design import SHAPES
from tiebreak.plan.resolve import complete
from tiebreak.plan.runs import Run
from tiebreak.results.record import PROGRAM_RUNS
from tiebreak.results.store import Store
from tiebreak.results.tally import Tally
from tiebreak.streams import stream
from tiebreak.study import registry
from tiebreak.study.design_file import DESIGNS_FILE, designs_are_code
from tiebreak.study.registry import Scalar
from tiebreak.study.rules import check_option
from tiebreak.tasks.interface import TrainedOn
from tiebreak.tasks.reply import Reply
from tiebreak.train import checkpoint
from tiebreak.train.monitor import load_evaluated
from tiebreak.train.step import initial_state


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
    if result.study.program is not None:
        raise TiebreakError(f"{folder}: the networks of a program are its own; see {PROGRAM_RUNS}/ for what it left")
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
