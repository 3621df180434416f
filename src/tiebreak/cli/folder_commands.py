"""Commands on many results folders, or on what one takes on the disk: `list` and `prune`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.cli.output import print_error, print_json, print_line
from tiebreak.cli.results_commands import FolderArgument
from tiebreak.errors import TiebreakError

if TYPE_CHECKING:
    from tiebreak.api import Result
    from tiebreak.results.prune import Prunable


class Keep(StrEnum):
    """Whose checkpoints stay."""

    chosen = "chosen"
    best = "best"
    none = "none"


AFTERWARDS = {
    Keep.chosen: "`tiebreak use` answers with every seed of each arm at its chosen setting.",
    Keep.best: "`tiebreak use` answers with the best run of each arm only, not with another --seed.",
    Keep.none: "`tiebreak use` no longer works in this folder.",
}


def list_studies(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="The folder with your results folders.")] = Path(
        "runs"
    ),
    json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """List the studies that were run: question, answer, runs, size on the disk, date."""
    from tiebreak.report.terminal import study_list
    from tiebreak.report.terminal.safe_console import SafeConsole
    from tiebreak.verdict.study_folders import find_studies

    found = find_studies(folder)
    if json:
        print_json(study_list.to_json(found))
    elif found:
        study_list.print_list(SafeConsole(), found)
    else:
        print_line(f"{folder}: no results folder in it; `tiebreak run` makes one")


def prune(
    folder: FolderArgument,
    keep: Annotated[
        Keep,
        typer.Option(
            help="Whose checkpoints stay: all seeds of each arm at its chosen setting, the best run of each arm, none."
        ),
    ] = Keep.chosen,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Make room: show what a results folder does not need for its answer, ask, and remove it.

    Records, verdict and report stay, and so do the checkpoints of runs that have not ended.
    """
    from tiebreak import api
    from tiebreak.report.formatting import size
    from tiebreak.results.folder import require_results_folder
    from tiebreak.results.lock import locked
    from tiebreak.results.prune import find_prunable
    from tiebreak.results.prune import prune as remove

    require_results_folder(folder)
    with locked(folder, print_error):
        result = api.open_result(folder)
        found = find_prunable(folder, result.plan, result.records, _needed(result, keep))
        _print_prunable(found)
        if not (found.checkpoints or found.stray or found.damaged):
            print_line(f"{folder}: nothing to remove")
            return
        if found.checkpoints:
            print_line(f"Afterwards {AFTERWARDS[keep]}")
            print_line("Runs without a checkpoint are trained from the beginning for more epochs or a new evaluation.")
        if not yes and not _confirmed(f"Remove {size(found.total)}?"):
            print_line("nothing removed")
            return
        remove(folder, found)
        print_line(f"{folder}: {size(found.total)} removed")


def _print_prunable(found: Prunable) -> None:
    from tiebreak.report.formatting import size
    from tiebreak.text import number_of

    lines = [
        (len(found.checkpoints), number_of(len(found.checkpoints), "checkpoint"), found.checkpoint_bytes),
        (len(found.stray), f"{number_of(len(found.stray), 'file')} that no record names", found.stray_bytes),
        (int(found.damaged is not None), f"damaged files that were set aside, {found.damaged}", found.damaged_bytes),
    ]
    for count, what, taken in lines:
        if count:
            print_line(f"can go: {what}, {size(taken)}")
    print_line(f"stays:  {number_of(found.kept, 'checkpoint')}, {size(found.kept_bytes)}; all records and the report")


def _confirmed(question: str) -> bool:
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:  # no terminal to ask at
        raise TiebreakError("nothing removed: prune asks before it removes anything; --yes answers it") from None


def _needed(result: Result, keep: Keep) -> set[str]:
    """The finished runs whose checkpoints stay."""
    from tiebreak.results.tally import Tally
    from tiebreak.trained import chosen_run

    tally = Tally(result.study, result.plan, result.records)
    found = set[str]()
    for arm in result.study.arms if keep != Keep.none else ():
        setting = tally.chosen(arm.name)
        if keep == Keep.chosen:
            found |= {identity for _, identity in tally.runs(arm.name, setting)}
        elif tally.scores(arm.name, setting, f"val_{result.study.metric}"):
            found.add(chosen_run(result, tally, arm.name, None).identity)
    return found
