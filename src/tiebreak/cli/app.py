"""The command line: parse, call one function, print. Everything heavy is imported inside the commands."""

from __future__ import annotations

import sys
from typing import Annotated, cast

import typer

from tiebreak.cli.claim_command import claims
from tiebreak.cli.compare_command import compare
from tiebreak.cli.data_commands import data_app
from tiebreak.cli.exchange_commands import export, log
from tiebreak.cli.folder_commands import list_studies, prune
from tiebreak.cli.output import print_error, print_line, usage_error
from tiebreak.cli.plain_flags import Command, Group
from tiebreak.cli.plan_command import plan
from tiebreak.cli.results_commands import check, open_report, report, status, use, verdict
from tiebreak.cli.run_command import run
from tiebreak.cli.study_commands import new, studies
from tiebreak.cli.theory_commands import cost
from tiebreak.cli.watch_command import watch
from tiebreak.errors import TiebreakError
from tiebreak.warned import told_warnings

app = typer.Typer(
    name="tiebreak",
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Is design A really better than design B, by how much, and at what cost?\n\n"
        "Tiebreak trains both on equal terms, with enough seeds to know. Start with:\n\n"
        "`tiebreak run pooling --quick` — three minutes on two cores, no download, ends with a verdict and a report."
    ),
)
app.add_typer(data_app, name="data")

# What click raises for a wrong command line. Newer versions of typer contain their own click, without a public name.
UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[1])


def main() -> None:
    """Run the command line. Bad input: one line on standard error and exit code 2."""
    try:
        with told_warnings(_warn):
            code = app(prog_name="tiebreak", standalone_mode=False)
    except TiebreakError as error:
        print_error(error)
        sys.exit(2)
    except UsageError as error:
        text = usage_error(error.format_message(), sys.argv[1:])
        if text:  # empty when no command was given: then typer has printed the help
            command = error.ctx.command_path if error.ctx is not None else "tiebreak"
            print_error(f"{text}; see {command} --help")
        sys.exit(2)
    sys.exit(code)


def _warn(text: str) -> None:
    from tiebreak.models.users_lines import line_here

    print_error(f"{text}{line_here()}")


def _print_version(asked: bool) -> None:
    if asked:
        from tiebreak import __version__

        print_line(f"tiebreak {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


NAMES: dict[object, str] = {list_studies: "list", open_report: "open"}  # where the function's name would hide a builtin
for command in (
    studies,
    new,
    plan,
    run,
    watch,
    list_studies,
    verdict,
    report,
    open_report,
    status,
    check,
    compare,
    export,
    log,
    use,
    prune,
    cost,
    claims,
):
    app.command(NAMES.get(command), cls=Command)(command)
