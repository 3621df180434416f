"""The command line: parse, call one function, print. Everything heavy is imported inside the commands."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tiebreak.cli.data import data_app
from tiebreak.cli.run_command import plan, run
from tiebreak.errors import TiebreakError

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    name="tiebreak",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Is design A really better than design B, by how much, and at what cost?\n\n"
        "Tiebreak trains both on equal terms, with enough seeds to know. Start with:\n\n"
        "`tiebreak run pooling --quick` — two minutes, no download, ends with a verdict and a report."
    ),
)
app.add_typer(data_app, name="data")

# What is raised for a wrong command line: of click, or of the click inside of typer, which has no public name.
WrongUse = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[1])

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A results folder: the --out of `tiebreak run`.")]


class Goal(StrEnum):
    """Which scores are better."""

    max = "max"
    min = "min"


def main() -> None:
    """Run the command line. Bad input: one line on standard error and exit code 2."""
    try:
        code = app(prog_name="tiebreak", standalone_mode=False)
    except TiebreakError as error:
        print(f"tiebreak: {error}", file=sys.stderr)
        sys.exit(2)
    except WrongUse as error:
        text = " ".join(error.format_message().split()).rstrip(".")
        if text:  # else the help was asked for by giving nothing, and stands there already
            command = error.ctx.command_path if error.ctx is not None else "tiebreak"
            print(f"tiebreak: {text[:1].lower()}{text[1:]}; see {command} --help", file=sys.stderr)
        sys.exit(2)
    sys.exit(code)


def _print_version(asked: bool) -> None:
    if asked:
        from tiebreak import __version__

        print(f"tiebreak {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


@app.command()
def studies() -> None:
    """List the built-in studies: the question, the data, the expected time."""
    from tiebreak.report.terminal import summaries
    from tiebreak.study.parsing import builtin_names
    from tiebreak.study.schema import Study

    rows = [Study.load(name) for name in builtin_names()]
    summaries.print_studies(_console(), [(item.name, item.question, item.data, item.about.time) for item in rows])


app.command()(plan)
app.command()(run)


@app.command()
def verdict(
    folder: FolderArgument,
    json: Annotated[bool, typer.Option("--json", help="Print verdict.json, for programs.")] = False,
) -> None:
    """Show the answer of a results folder, from what is there now."""
    from tiebreak import api
    from tiebreak.report.terminal import summaries

    result = api.open_result(folder)
    if json:
        print(result.verdict.to_json(), end="")
    else:
        summaries.print_verdict(_console(), result.verdict, result.report if result.report.is_file() else None)


@app.command()
def report(folder: FolderArgument) -> None:
    """Write report.html and report.md anew from the records, complete or not."""
    from tiebreak import api
    from tiebreak.report.page import document

    result = api.conclude(folder)
    print(document.write_report(folder, result.study, result.plan, result.records, result.verdict))


@app.command()
def status(folder: FolderArgument) -> None:
    """Show which runs are done, diverged, failed or missing. Never disturbs a run in progress."""
    from tiebreak import api
    from tiebreak.report.terminal import summaries

    result = api.open_result(folder)
    summaries.print_status(_console(), result.plan, result.records)


@app.command()
def check(folder: FolderArgument) -> None:
    """Verify every hash of a results folder: plan, records, checkpoints."""
    from tiebreak import api

    compared, problems = api.check(folder)
    if problems:
        raise TiebreakError("\n".join(problems))
    print(f"{folder}: {compared} hashes compared, all as they were written")


@app.command()
def compare(
    scores: Annotated[Path, typer.Argument(metavar="SCORES.CSV", help="Columns: arm, seed, score.")],
    margin: Annotated[float, typer.Option(help="The smallest difference that matters.")] = 0.005,
    goal: Annotated[Goal, typer.Option(help="Whether more or less is better.")] = Goal.max,
    json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Decide between arms from scores that you already have: no training.

    The file has one line per run: `arm,seed,score`. Runs with the same seed are paired.
    """
    from tiebreak.report.terminal import listings
    from tiebreak.verdict.scores import compare_scores, read_scores

    if not margin > 0:
        raise TiebreakError(f"--margin {margin:g}: should be above 0, in the unit of the scores")
    compared = compare_scores(read_scores(scores), goal=goal.value, margin=margin)
    if json:
        print(listings.compared_json(compared))
    else:
        listings.print_compared(_console(), compared, margin)


@app.command()
def use(
    folder: FolderArgument,
    given: Annotated[
        str,
        typer.Argument(metavar="INPUT", help="A picture or sound file, a sentence, a text to continue, a node."),
    ],
    arm: Annotated[str | None, typer.Option(metavar="NAME", help="Default: the best arm on validation.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Default: the arm's best run on validation.")] = None,
    beam: Annotated[
        int | None, typer.Option(metavar="N", help="Sentences and speech: keep the N best while decoding.")
    ] = None,
    show_attention: Annotated[bool, typer.Option(help="Sentences: where each letter looked at the input.")] = False,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="Texts: below 1 likely words get likelier.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(metavar="K", help="Texts: draw from the K likeliest words.")] = None,
    top_p: Annotated[float | None, typer.Option(metavar="P", help="Texts: from the likeliest of this share.")] = None,
    n: Annotated[int | None, typer.Option("--n", metavar="N", help="Texts: how many.")] = None,
    words: Annotated[int | None, typer.Option(metavar="N", help="Texts: words at most, 100 unless given.")] = None,
    sampling_seed: Annotated[int | None, typer.Option(metavar="N", help="Texts: other draws.")] = None,
) -> None:
    """Put a trained network to work: classify a picture, transcribe a sound, translate a sentence, continue a text."""
    from tiebreak.cli.use import use as use_run
    from tiebreak.report.terminal import listings

    wanted = {"beam": beam, "show_attention": show_attention or None, "temperature": temperature, "top_k": top_k}
    wanted |= {"top_p": top_p, "n": n, "words": words, "sampling_seed": sampling_seed}
    how = {name: value for name, value in wanted.items() if value is not None}
    used = use_run(folder, given, arm=arm, seed=seed, how=how)
    listings.print_reply(_console(), used.reply, f"{used.arm} ({used.run.label})")


@app.command()
def cost(
    part: Annotated[str | None, typer.Argument(metavar="[PART]", help="A layer or design; none: list them.")] = None,
    vary: Annotated[str | None, typer.Option(metavar="L=256..4096", help="A variable and its range.")] = None,
    against: Annotated[str | None, typer.Option(metavar="OTHER", help="Another part, on the same plot.")] = None,
    given: Annotated[list[str] | None, typer.Option("--set", metavar="D=64", help="A variable's value.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The plot as .svg or .png.")] = None,
    measure: Annotated[bool, typer.Option("--measure/--no-measure", help="Count and time the real thing.")] = True,
) -> None:
    """Show what a layer or design costs: by formula, counted and timed, and how that grows in a variable."""
    from tiebreak.theory import cost_command

    asked = cost_command.Asked(part=part, vary=vary, against=against, given=given or (), out=out, measured=measure)
    cost_command.show(_console(), asked)


@app.command()
def claims(json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Show every claim of the reports with its verdict now: identities are computed, studies named."""
    from tiebreak.report.terminal import claim_table
    from tiebreak.study.parsing import builtin_names
    from tiebreak.theory import claims as ledger
    from tiebreak.theory import identities

    found = ledger.standings(identities.outcomes(), builtin_names())
    if json:
        print(ledger.to_json(found))
    else:
        claim_table.print_claims(_console(), found)


@app.command()
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
    print(f"{path}: edit it, then `tiebreak plan {path}`")
