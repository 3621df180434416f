"""`tiebreak use DIR INPUT`: apply a trained run to one input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tiebreak import catalog
from tiebreak.api import open_result
from tiebreak.errors import TiebreakError
from tiebreak.plan.resolve import complete
from tiebreak.plan.runs import Run
from tiebreak.study.registry import Scalar
from tiebreak.study.rules import check_option
from tiebreak.study.schema import Study
from tiebreak.tasks.interface import TrainedOn
from tiebreak.tasks.reply import Reply
from tiebreak.trained import design_copy, load_trained


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
    _check(how, result.study)
    trained = load_trained(result, arm, seed, notify)
    run, known = trained.run, result.plan.data
    task = catalog.find_task(run.task, design_copy(result))
    trained_on = TrainedOn(
        shape=trained.shape, vocabulary=known.vocabulary, options=run.options, data=run.data, front_end=known.front_end
    )
    options = complete(result.study.entry.use, how)
    return Used(trained.arm, run, task.answer(trained.network, given, trained_on, options))


def _check(how: Mapping[str, Scalar], study: Study) -> None:
    """Options are named as on the command line."""
    known = {f"--{name.replace('_', '-')}": option for name, option in study.entry.use.items()}
    for name, value in how.items():
        spelled = f"--{name.replace('_', '-')}"
        if spelled not in known:
            have = f"it has {', '.join(known)}" if known else "it has none of its own"
            raise TiebreakError(f"{spelled}: not an option of the task {study.task}; {have}")
        try:
            check_option(spelled, value, known[spelled])
        except ValueError as error:
            raise TiebreakError(str(error)) from None
