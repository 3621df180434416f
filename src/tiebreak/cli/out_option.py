"""The option `--out` of commands that write a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _folder(name: str) -> Path:
    if not name:  # of an unset variable; the current folder is called .
        raise typer.BadParameter("the name of the results folder is empty")
    return Path(name)


OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", parser=_folder, help="Results folder; default: runs/STUDY.")
]
