"""The command `claims`: every claim of the five reports, from identities, the docket and your results."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak import files
from tiebreak.cli.output import print_error, print_json, print_line
from tiebreak.errors import TiebreakError

if TYPE_CHECKING:
    from tiebreak.theory.claims import ClaimStatus
    from tiebreak.verdict.docket import DocketEntry
    from tiebreak.verdict.study_folders import StudyFolder

PAGE = "claims.html"


class Studies(StrEnum):
    """Which studies `--run` trains."""

    quick = "quick"


def claims(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="The folder with your results folders; default: runs.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="The same as DIR: your results beside the kept ones.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    html: Annotated[bool, typer.Option("--html", help="Write claims.html: every claim with a picture.")] = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help=f"The page; default: {PAGE}.")] = None,
    run: Annotated[
        Studies | None, typer.Option("--run", help="First run the small version of every study that has no result yet.")
    ] = None,
) -> None:
    """Show every claim of the five student reports that Tiebreak checks (reports R0 to R4), and whether it holds.

    Some are computed now; others were decided by studies, whose results are kept in the package. Studies that you have
    run are looked for in DIR and come before kept results that are as close to a claim's own terms.
    """
    from tiebreak.report.terminal import claim_table
    from tiebreak.report.terminal.safe_console import SafeConsole

    if folder is not None and source is not None:
        raise TiebreakError(f"claims: DIR {folder} and --from {source} are the same option; give one of them")
    if json and html:
        raise TiebreakError("claims: --json and --html are two forms of the same; give one of them")
    if out is not None and not html:
        raise TiebreakError(f"--out {out}: the page is written with --html; add it")
    if html:
        files.check_place(out or Path(PAGE))  # before --run takes its time
    where, console = source or folder or Path("runs"), SafeConsole()
    failed = 0
    if run is not None:
        from tiebreak.cli.quick_studies import run_quick

        failed = run_quick(where, console)
    with console.status("loading") as shown:  # on a terminal only, and gone at the end
        named = source is not None or folder is not None
        found = _statuses(where, named and run is None, lambda name: shown.update(f"computing {name}"))
    if json:
        from tiebreak.theory import claims as ledger

        print_json(ledger.to_json(found))
    elif html:
        from tiebreak.report.page import claim_page

        print_line(claim_page.write_claims(out or Path(PAGE), found))
    else:
        claim_table.print_claims(console, found)
    if failed:
        raise typer.Exit(2)


def _statuses(folder: Path, named: bool, notify: Callable[[str], None]) -> list[ClaimStatus]:
    """Every claim, from the identities, the docket and the results in `folder`, which must exist if it was `named`."""
    from tiebreak.study.parsing import builtin_names
    from tiebreak.study.schema import Study
    from tiebreak.theory import claims as ledger
    from tiebreak.theory import identities
    from tiebreak.verdict.docket import read_docket

    kept = read_docket()
    own = own_entries(folder) if named or folder.is_dir() else []
    if named and not own:
        print_error(f"{folder}: no finished study there speaks of a claim; what follows is kept in the package")
    terms = {}
    for name in builtin_names():
        study = Study.load(name)
        terms[name] = f"{study.data}, {study.protocol}, {study.budget.epochs} epochs"
    return ledger.statuses(identities.outcomes(notify), terms, kept, own)


def own_entries(folder: Path) -> list[DocketEntry]:
    """What the finished studies in a folder say of the claims, the newest last; damaged ones are named and left out."""
    from tiebreak.theory.claims import LEDGER, unknown_claims
    from tiebreak.verdict.study_folders import find_studies

    studies = {entry.study for entry in LEDGER}
    found: list[DocketEntry] = []
    for study in sorted(find_studies(folder), key=lambda each: each.changed):
        if study.problem:
            print_error(f"left out: {study.problem}")
        elif study.study in studies and study.verdict is not None and study.ended == study.planned:
            for line in unknown_claims(claim.id for claim in study.verdict.claims):
                print_error(f"left out: {study.path}: {line}")
            found += _entries(study)
        elif study.study in studies:
            print_error(f"left out: {_unread(study)}")
    return found


def _unread(study: StudyFolder) -> str:
    """Why a study has no verdict to read, and the command that makes one."""
    from tiebreak.verdict.model import VERDICT_FILE

    if study.ended < study.planned:
        again = shlex.join(["tiebreak", "status", str(study.path)])
        return f"{study.path}: {study.ended:,} of {study.planned:,} runs have ended; see `{again}`"
    path, again = study.path / VERDICT_FILE, shlex.join(["tiebreak", "report", str(study.path)])
    return f"{path}: {'not as it was written' if path.is_file() else 'missing'}; `{again}` writes it again"


def _entries(study: StudyFolder) -> list[DocketEntry]:
    from tiebreak.results.folder import read_training_state
    from tiebreak.results.stored_study import load_study
    from tiebreak.theory.claims import LEDGER
    from tiebreak.verdict.docket import Origin, entries_of
    from tiebreak.verdict.model import VERDICT_FILE

    assert study.verdict is not None
    stored, (_, state) = load_study(study.path), read_training_state(study.path)
    devices = Counter(record.provenance.get("device", "unknown") for record in state.runs.values())
    path = study.path / VERDICT_FILE
    origin = Origin(
        file=str(path),
        study=study.study,
        date=study.changed.date().isoformat(),
        device=devices.most_common(1)[0][0] if devices else "unknown",
        command=shlex.join(["tiebreak", "run", str(study.path / "study.toml"), "--out", str(study.path)]),
        epochs=stored.budget.epochs,
        quality=next((entry.id for entry in LEDGER if entry.identity and entry.study == study.study), None),
    )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return entries_of(study.verdict.model_dump(mode="json"), origin, digest, stored)
