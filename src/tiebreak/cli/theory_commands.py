"""Commands on theory: `cost` of layers and designs, `claims` of the reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.cli.output import print_json

if TYPE_CHECKING:
    from tiebreak.theory.claims import StudyOutcome


def cost(
    part: Annotated[
        str | None, typer.Argument(metavar="[PART]", help="A layer or design; without it, all are listed.")
    ] = None,
    vary: Annotated[str | None, typer.Option(metavar="L=256..4096", help="A variable and its range.")] = None,
    against: Annotated[str | None, typer.Option(metavar="OTHER", help="Another part, on the same plot.")] = None,
    given: Annotated[list[str] | None, typer.Option("--set", metavar="D=64", help="A variable's value.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The plot as .svg or .png.")] = None,
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Count and time the real layer or design.")
    ] = True,
) -> None:
    """Show what a layer or design costs: by formula, counted and timed, and how that grows in a variable."""
    from tiebreak.report.terminal.safe_console import SafeConsole
    from tiebreak.theory import cost_command

    options = cost_command.CostOptions(
        part=part, vary=vary, against=against, given=given or (), out=out, measured=measure
    )
    cost_command.show(SafeConsole(), options)


def claims(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="The folder with your results folders.")] = Path(
        "runs"
    ),
    json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show every claim of the five student reports that Tiebreak checks (reports R0 to R4), and whether it holds.

    Some are computed now; others are decided by a study. Studies that you have run are looked for in DIR.
    """
    from tiebreak.report.terminal import claim_table
    from tiebreak.report.terminal.safe_console import SafeConsole

    console = SafeConsole()
    with console.status("loading") as shown:  # on a terminal only, and gone at the end
        from tiebreak.study.parsing import builtin_names
        from tiebreak.theory import claims as ledger
        from tiebreak.theory import identities

        studied = _study_outcomes(folder) if folder.is_dir() else {}
        outcomes = identities.outcomes(lambda name: shown.update(f"computing {name}"))
        found = ledger.statuses(outcomes, builtin_names(), studied)
    if json:
        print_json(ledger.to_json(found))
    else:
        claim_table.print_claims(console, found)


def _study_outcomes(folder: Path) -> dict[str, StudyOutcome]:
    """What the finished studies in a folder say of the claims, by id: the newest, but a hint only where all are."""
    from tiebreak.report.formatting import claim_outcome
    from tiebreak.theory.claims import LEDGER, StudyOutcome
    from tiebreak.verdict.study_folders import find_studies

    own = {entry.id: entry.study for entry in LEDGER}
    found: dict[str, StudyOutcome] = {}
    for study in sorted(find_studies(folder), key=lambda each: each.changed):
        for claim in study.verdict.claims if study.verdict is not None else ():
            if own.get(claim.id) != study.study or claim.verdict == "not run here":
                continue
            if claim.verdict != "hint" or claim.id not in found or found[claim.id].verdict == "hint":
                words = claim_outcome(claim)
                found[claim.id] = StudyOutcome(str(study.path), claim.verdict, words, claim.why)
    return found
