"""Commands that hand results over: `export` for a paper, `log` for a tracker. Heavy imports are inside the commands."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.cli.output import print_line
from tiebreak.files import subfolder

if TYPE_CHECKING:
    from tiebreak.exchange.export_content import ExportContent

FIGURES = "figures"  # in it, with the tables of latex
EXPORTS = "export"  # the folder in the results folder


class Form(StrEnum):
    """What results can be exported as."""

    latex = "latex"
    csv = "csv"
    parquet = "parquet"
    json = "json"
    markdown = "markdown"
    png = "png"
    pdf = "pdf"
    svg = "svg"


class Tracker(StrEnum):
    """Where runs can be logged."""

    mlflow = "mlflow"
    tensorboard = "tensorboard"
    wandb_offline = "wandb-offline"


def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The --out folder of `tiebreak run` or of `tiebreak compare`.")
    ],
    form: Annotated[Form, typer.Option("--to", help="Tables (latex, csv, parquet, json, markdown) or all figures.")],
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Default: DIR/export.")] = None,
) -> None:
    """Write the results as files for a paper: booktabs tables, the sentence for the text, every figure."""
    from tiebreak.exchange.export import export as write

    place = out or subfolder(folder, EXPORTS, FIGURES).parent
    for path in write(_content(folder), form.value, place):
        print_line(path)


def log(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder: the --out of `tiebreak run`.")],
    tracker: Annotated[Tracker, typer.Option("--to", help="The tracker.")],
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Default: DIR/log-TRACKER.")] = None,
) -> None:
    """Hand the runs over to a tracker: parameters, metrics per epoch, test scores. Nothing is sent anywhere."""
    from rich.progress import Progress

    from tiebreak import api
    from tiebreak.exchange.logged_runs import logged_runs
    from tiebreak.exchange.tracker_logs import log_runs
    from tiebreak.report.terminal.safe_console import SafeConsole

    result = api.open_result(folder)
    runs = list(logged_runs(result.study, result.plan, result.records))
    place = out or subfolder(folder, f"log-{tracker.value}")
    with Progress(console=SafeConsole(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bars:
        task = bars.add_task(f"logging {len(runs):,} runs", total=len(runs))

        def show(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        look = log_runs(runs, result.study.name, tracker.value, place, show)
    print_line(f"{len(runs):,} runs in {place}; to look at them: {look}")


def _content(folder: Path) -> ExportContent:
    from tiebreak import api
    from tiebreak.exchange import export_content
    from tiebreak.exchange.scores_folder import is_scores_folder, read_scores_folder

    if is_scores_folder(folder):
        return export_content.of_scores(*read_scores_folder(folder))
    result = api.open_result(folder)
    return export_content.of_study(result.study, result.plan, result.records, result.verdict)
