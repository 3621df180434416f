"""The command line: parse, call one function, print. Everything heavy is imported inside the commands."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tiebreak.cli.data_commands import DataDirOption, data_app
from tiebreak.errors import TiebreakError

if TYPE_CHECKING:
    from rich.console import Console

    from tiebreak.study.schema import Study

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

StudyArgument = Annotated[
    str, typer.Argument(metavar="STUDY", help="A built-in study by name, or the path of a .toml file.")
]
FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A results folder: the --out of `tiebreak run`.")]
QuickOption = Annotated[bool, typer.Option("--quick", help="The small version: embedded data, minutes on two cores.")]
DataOption = Annotated[
    str | None, typer.Option("--data", metavar="NAME", help="Another data set; see `tiebreak data list`.")
]
SeedsOption = Annotated[int | None, typer.Option("--seeds", metavar="N", help="Replicates per arm and setting.")]
EpochsOption = Annotated[int | None, typer.Option("--epochs", metavar="N", help="Passes over the training data.")]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, metavar="N", help="Processes; default: one per core.")
]


class Device(StrEnum):
    """Where training happens."""

    cpu = "cpu"
    cuda = "cuda"


DeviceOption = Annotated[Device, typer.Option(help="Where to train.")]


class Strategy(StrEnum):
    """How the runs of a design are trained."""

    auto = "auto"
    fused = "fused"
    loop = "loop"


class Precision(StrEnum):
    """How exact large matrix products are on a GPU."""

    float32 = "float32"
    tf32 = "tf32"


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


def _study(name: str, quick: bool, data: str | None, seeds: int | None, epochs: int | None) -> Study:
    from tiebreak.study.schema import Study

    study = Study.load(name)
    study = study.quickened() if quick else study
    return study.changed(data=data, seeds=seeds, epochs=epochs)


@app.command()
def studies() -> None:
    """List the built-in studies: the question, the data, the expected time."""
    from tiebreak.report.terminal import summaries
    from tiebreak.study.parsing import builtin_names
    from tiebreak.study.schema import Study

    rows = [Study.load(name) for name in builtin_names()]
    summaries.print_studies(_console(), [(item.name, item.question, item.data, item.about.time) for item in rows])


@app.command()
def plan(
    study: StudyArgument,
    data: DataOption = None,
    data_dir: DataDirOption = None,
    seeds: SeedsOption = None,
    epochs: EpochsOption = None,
    quick: QuickOption = False,
    device: DeviceOption = Device.cpu,
    workers: WorkersOption = None,
) -> None:
    """Show what a study would train, on which equal terms, and for how long. Trains nothing."""
    from tiebreak.drive.jobs import most_at_once
    from tiebreak.drive.runner import Machine
    from tiebreak.plan.planner import make_plan, predict
    from tiebreak.report.terminal import summaries

    chosen = _study(study, quick, data, seeds, epochs)
    planned = make_plan(chosen, data_dir)
    processes = Machine(device=device, workers=workers).processes()
    predicted = predict(planned, data_dir, processes)
    rows = []
    for item in predicted.cohorts:
        at_once = 1 if item.cannot_fuse else most_at_once(item.runs, device, processes)
        rows.append(
            summaries.CohortRow(
                name=item.name,
                runs=item.runs,
                parameters=item.parameters,
                at_once=at_once,
                memory=at_once * item.run_bytes,
                cannot_fuse=item.cannot_fuse,
            )
        )
    summaries.print_plan(_console(), chosen, planned, predicted.seconds if device == Device.cpu else None)
    memory = processes * (predicted.process_bytes + max(row.memory for row in rows))
    summaries.print_cohorts(_console(), rows, memory)


@app.command()
def run(
    study: StudyArgument,
    data: DataOption = None,
    data_dir: DataDirOption = None,
    seeds: SeedsOption = None,
    epochs: EpochsOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Results folder; default: runs/STUDY.")
    ] = None,
    quick: QuickOption = False,
    device: DeviceOption = Device.cpu,
    workers: WorkersOption = None,
    strategy: Annotated[
        Strategy,
        typer.Option(
            help="Train the runs of a design as one computation (fused) or one after the other (loop). auto: the "
            "faster, timed once and kept. Both train the same runs, but mixing them in one study changes numbers by "
            "rounding."
        ),
    ] = Strategy.auto,
    precision: Annotated[
        Precision,
        typer.Option(
            help="Of large matrix products on a GPU. tf32: 10 bits instead of 23, in a fraction of the time; networks "
            "without large products gain nothing."
        ),
    ] = Precision.float32,
) -> None:
    """Train what is missing, decide, and write the report.

    The same command continues after an interruption and repeats nothing; more `--seeds` or `--epochs` extend what is
    there. The folder then holds study.toml, plan.json, records.sqlite, checkpoints/, verdict.json, report.md and
    report.html.
    """
    from tiebreak import api
    from tiebreak.cli.progress import Watch
    from tiebreak.drive.runner import Machine
    from tiebreak.report.terminal import summaries

    chosen = _study(study, quick, data, seeds, epochs)
    console, folder = _console(), out or Path("runs") / chosen.name
    machine = Machine(
        device=device, workers=workers, data_dir=data_dir, strategy=strategy.value, precision=precision.value
    )
    try:
        with Watch(console) as watch:
            result = api.run(chosen, folder, machine=machine, listen=watch.hear)
    except KeyboardInterrupt:
        print("\ntiebreak: stopped; the same command continues where it was", file=sys.stderr)
        raise typer.Exit(130) from None
    summaries.print_verdict(console, result.verdict, result.report)


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
