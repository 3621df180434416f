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


def new(name: Annotated[str, typer.Argument(help="The study's name: letters, digits, - and _.")]) -> None:
    """Write NAME.toml, a commented study file to start from."""
    import tomllib
    from importlib import resources

    from tiebreak import files
    from tiebreak.study import parsing
    from tiebreak.study.schema import Study

    text = (resources.files("tiebreak.study") / "template.toml").read_text("utf-8")
    parsing.validate(Study, {**tomllib.loads(text), "name": name}, "new study")
    path = Path(f"{name}.toml")
    if path.exists():
        raise TiebreakError(f"{path}: is there already; give another name")
    files.write(path, text.replace("NAME", name))
    print_line(f"{path}: edit it, then `tiebreak plan {path}`")
