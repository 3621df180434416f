"""The command `run`, and the options that it shares with `plan`. Everything heavy is imported inside."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.cli.data_commands import DataDirOption
from tiebreak.cli.out_option import OutOption
from tiebreak.cli.output import print_error
from tiebreak.cli.seed_options import AllDecidedOption, MaxSeedsOption, UntilDecidedOption, growing

if TYPE_CHECKING:
    from tiebreak.study.schema import Study

StudyArgument = Annotated[
    str, typer.Argument(metavar="STUDY", help="A built-in study by name, or the path of a .toml file.")
]
QuickOption = Annotated[bool, typer.Option("--quick", help="The small version: embedded data, minutes on two cores.")]
DataOption = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="NAME", help="Another data set of `tiebreak data list`, or your own: ./folder, ./file."
    ),
]

SeedsOption = Annotated[int | None, typer.Option("--seeds", min=1, metavar="N", help="Replicates per arm and setting.")]
EpochsOption = Annotated[
    int | None, typer.Option("--epochs", min=1, metavar="N", help="Passes over the training data.")
]
GridOption = Annotated[
    list[str] | None, typer.Option("--grid", metavar="NAME=V,V", help="Values to tune over, such as lr=0.1,0.03.")
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", min=1, metavar="N", help="Processes; default: one per core.")
]

OnOption = Annotated[
    str,
    typer.Option("--on", metavar="PLACE", help="local, ray (RAY_ADDRESS, or a new local cluster) or ray://HOST:PORT."),
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
    """The precision of products."""

    float32 = "float32"
    tf32 = "tf32"
    bf16 = "bf16"


def chosen_study(
    name: str, quick: bool, data: str | None, seeds: int | None, epochs: int | None, grid: list[str] | None
) -> Study:
    """The study that the options choose."""
    from tiebreak.results.manifest import STUDY_FILE, require_folder_file
    from tiebreak.study.parsing import grid_values
    from tiebreak.study.schema import Study

    if Path(name).name == STUDY_FILE:
        require_folder_file(Path(name))  # the copy in a results folder must be as it was written
    study = Study.load(name)
    if study.program is not None:
        from tiebreak.plan.program_plan import require_program

        require_program(study, name)
    study = study.quickened() if quick else study
    return study.changed(data=data, seeds=seeds, epochs=epochs, grid=dict(map(grid_values, grid or ())))


def run(
    study: StudyArgument,
    data: DataOption = None,
    data_dir: DataDirOption = None,
    seeds: SeedsOption = None,
    until_decided: UntilDecidedOption = False,
    until_all_decided: AllDecidedOption = False,
    max_seeds: MaxSeedsOption = None,
    epochs: EpochsOption = None,
    grid: GridOption = None,
    out: OutOption = None,
    quick: QuickOption = False,
    device: DeviceOption = Device.cpu,
    workers: WorkersOption = None,
    on: OnOption = "local",
    strategy: Annotated[
        Strategy,
        typer.Option(
            help="Train the runs of a design as one computation (fused) or one after the other (loop). auto measures "
            "once which is faster. Both train the same runs, but their numbers differ by rounding: do not mix them in "
            "one study."
        ),
    ] = Strategy.auto,
    precision: Annotated[
        Precision,
        typer.Option(
            help="Precision of products, the same for all arms. tf32 requires --device cuda: 10 bits instead of 23. "
            "bf16: 7 bits, mixed precision (torch.autocast); weights, statistics, softmax, loss and updates stay "
            "float32. Both are faster on a GPU."
        ),
    ] = Precision.float32,
    allow_program: Annotated[
        bool,
        typer.Option("--allow-program", help="Run the study's own program, with your rights, without a question."),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Serve a page to watch the study on, as long as it runs; prints the link.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, metavar="N", help="Port of --watch; default: 8088, 0: any free one."),
    ] = None,
) -> None:
    """Train the runs that are missing, decide, and write the report.

    After an interruption the same command continues and repeats nothing; more `--seeds` or `--epochs` extend the
    results. `--until-decided` trains as few seeds as the question needs: its 95 % hold for all looks together. The
    folder then holds study.toml, plan.json, records.sqlite, checkpoints/, verdict.json, report.md and report.html.
    Exit code: 0, also where the answer is undecided; 1 if no run has a score; 2 for wrong input; 130 if stopped.
    """
    from tiebreak import api
    from tiebreak.cli.ask import asked
    from tiebreak.cli.progress import ProgressListener
    from tiebreak.cli.watch_command import beside
    from tiebreak.drive.machine import Machine
    from tiebreak.report.terminal import summaries
    from tiebreak.report.terminal.safe_console import SafeConsole

    chosen = chosen_study(study, quick, data, seeds, epochs, grid)
    chosen = growing(chosen, seeds, until_decided, until_all_decided, max_seeds)
    console, folder = SafeConsole(), out or Path("runs") / chosen.name
    machine = Machine(
        device=device, workers=workers, data_dir=data_dir, strategy=strategy.value, precision=precision.value, on=on
    )
    allowed = allow_program or (chosen.program is not None and asked(chosen))
    try:
        with beside(folder, watch=watch, port=port):
            with ProgressListener(console) as progress:
                result = api.run(chosen, folder, machine=machine, listen=progress.on_message, allow_program=allowed)
            summaries.print_verdict(console, result.verdict, result.report)
        if not any(arm.seeds for arm in result.verdict.designs):
            raise typer.Exit(1)  # a script should not go on as if something had been found
    except KeyboardInterrupt:
        sys.stderr.write("\n")  # after the ^C of the terminal
        print_error("stopped; the same command continues where it was")
        raise typer.Exit(130) from None
