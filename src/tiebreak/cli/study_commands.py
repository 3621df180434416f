"""Commands on study files: `studies` lists the built-in ones, `new` writes one to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tiebreak.cli.output import print_line
from tiebreak.errors import TiebreakError


def studies() -> None:
    """List the built-in studies: the question, the data, the expected time."""
    from tiebreak.report.terminal import summaries
    from tiebreak.report.terminal.safe_console import SafeConsole
    from tiebreak.study.parsing import builtin_names
    from tiebreak.study.schema import Study

    rows = [Study.load(name) for name in builtin_names()]
    summaries.print_studies(SafeConsole(), [(item.name, item.question, item.data, item.about.time) for item in rows])


def new(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The study's name: letters, digits, dots, underscores and hyphens.")
    ],
    full: Annotated[bool, typer.Option("--full", help="Write every key, most as a comment with an example.")] = False,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="STUDY", help="Copy a built-in study; `tiebreak studies` lists them."),
    ] = None,
) -> None:
    """Write NAME.toml, a commented study file to start from."""
    from tiebreak import files
    from tiebreak.study import parsing
    from tiebreak.study.schema import Study
    from tiebreak.study.study_reference import full_file

    if full and source is not None:
        raise TiebreakError("--full, --from: choose one of the two")
    name = name.removesuffix(".toml")
    parsing.validate(Study, {**parsing.template(), "name": name}, "new study")
    if source is not None:
        text = parsing.copy_of_builtin(source, name)
    else:
        text = full_file(name) if full else parsing.template_text().replace("NAME", name)
    path = Path(f"{name}.toml")
    if path.exists():
        raise TiebreakError(f"{path}: is there already; give another name")
    files.write(path, text)
    print_line(f"{path}: edit it, then `tiebreak plan {path}`")
