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
    own_task: Annotated[
        bool,
        typer.Option("--own-task", help="A study of your own data, loss and metrics: write NAME.py with them too."),
    ] = False,
) -> None:
    """Write NAME.toml, a commented study file to start from."""
    from tiebreak import files
    from tiebreak.study import parsing
    from tiebreak.study.schema import Study
    from tiebreak.study.study_reference import full_file

    if full + (source is not None) + own_task > 1:
        raise TiebreakError("--full, --from, --own-task: choose one of them")
    name = name.removesuffix(".toml")
    parsing.validate(Study, {**parsing.template(), "name": name}, "new study")
    path, code = Path(f"{name}.toml"), Path(f"{name}.py")
    written = {}
    if source is not None:
        written[path] = parsing.copy_of_builtin(source, name)
    elif own_task:
        written[code] = parsing.template_text("template_own.txt").replace("NAME", name)
        written[path] = parsing.template_text("template_own.toml").replace("NAME", name)
    else:
        written[path] = full_file(name) if full else parsing.template_text().replace("NAME", name)
    for each in written:
        if each.exists():
            raise TiebreakError(f"{each}: is there already; give another name")
    for each, text in written.items():
        files.write(each, text)
    edited = f"{code} and {path}: edit them" if own_task else f"{path}: edit it"
    print_line(f"{edited}, then `tiebreak plan {path}`")
