"""Commands on many results folders, or on what one takes on the disk: `list` and `prune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tiebreak.cli.output import print_json, print_line


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
