"""The command `cost`: what layers and designs cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


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
