"""`tiebreak compare`: the verdict on scores that you already have. Everything heavy is imported inside the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiebreak.cli.output import print_json, print_line
from tiebreak.errors import TiebreakError

if TYPE_CHECKING:
    from tiebreak.exchange.pick import ScoreTable
    from tiebreak.exchange.score_sources import Progress
    from tiebreak.verdict.model import Verdict
    from tiebreak.verdict.table_verdict import TableQuestion


class Goal(StrEnum):
    """Which scores are better."""

    max = "max"
    min = "min"


class Pairing(StrEnum):
    """How the runs of two arms belong together."""

    auto = "auto"
    paired = "paired"
    unpaired = "unpaired"


class From(StrEnum):
    """The tool that wrote the scores."""

    csv = "csv"
    json = "json"
    parquet = "parquet"
    wandb = "wandb"
    mlflow = "mlflow"
    tensorboard = "tensorboard"
    optuna = "optuna"
    trainer_state = "trainer-state"


def compare(
    scores: Annotated[
        str,
        typer.Argument(
            metavar="SCORES",
            help="A CSV (long or wide), Parquet or JSON lines file, a W&B export, an MLflow store, TensorBoard event "
            "folders, an Optuna storage, or folders with trainer_state.json.",
        ),
    ],
    margin: Annotated[float, typer.Option(help="The smallest difference that matters.")] = 0.005,
    goal: Annotated[Goal, typer.Option(help="Whether more or less is better.")] = Goal.max,
    arm: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column or parameter that names the arm; a,b joins two.")
    ] = None,
    seed: Annotated[str | None, typer.Option(metavar="NAME", help="The column or parameter with the seed.")] = None,
    score: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column, tag or metric to compare; a,b: columns of arms.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column with the data set, if there are several.")
    ] = None,
    run_name: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Arm and seed in the names of runs: '{arm}-seed{seed}'.")
    ] = None,
    source: Annotated[
        From | None, typer.Option("--from", help="The kind of SCORES, where it is not recognised.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="ARM", help="Compare every other arm with this one, instead of all pairs.")
    ] = None,
    pairs: Annotated[str | None, typer.Option(metavar="A:B,C:D", help="Compare only these pairs.")] = None,
    all_pairs: Annotated[bool, typer.Option("--all-pairs", help="Compare all pairs of more than 50 arms.")] = False,
    pairing: Annotated[
        Pairing, typer.Option(help="By seed: auto, paired (only seeds of both arms), or unpaired (Welch's test).")
    ] = Pairing.auto,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write report.html, report.md, verdict.json, scores.csv."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="For programs: the keys of verdict.json, and every score.")
    ] = False,
) -> None:
    """Decide between arms from scores that you already have: no training.

    A file has one line per run: `arm,seed,score` (and `dataset`), or a column for each arm. Runs with the same seed are
    paired; arms that share no seed are compared by Welch's test. Only the pairs asked for count for the correction.
    """
    from tiebreak.exchange.pick import Columns
    from tiebreak.exchange.score_sources import read_score_table
    from tiebreak.report.terminal import score_summary
    from tiebreak.report.terminal.safe_console import SafeConsole
    from tiebreak.system import collector_paused
    from tiebreak.verdict.scores import choose_pairs
    from tiebreak.verdict.table_verdict import NO_SEEDS, TableQuestion

    if not margin > 0:
        raise TiebreakError(f"--margin {margin:g}: should be above 0, in the unit of the scores")
    if out is not None:
        from tiebreak.exchange.scores_folder import check_place

        check_place(out)
    columns = Columns(arm=arm, seed=seed, score=score, dataset=dataset, run_name=run_name)
    with collector_paused(), _progress() as progress:
        found = read_score_table(scores, columns, source.value if source else None, progress)
        arms = dict.fromkeys(name for own in found.sets.values() for name in own)
        asked = TableQuestion(
            name=Path(scores).name,
            metric=found.score,
            goal=goal.value,
            margin=margin,
            pairs=choose_pairs(arms, baseline=baseline, pairs=pairs, all_pairs=all_pairs),
            pairing=pairing.value if found.seeded else "unpaired",
            notes=[*found.notes, *([] if found.seeded or pairing is Pairing.unpaired else [NO_SEEDS])],
        )
        verdict = _judge(scores, found, asked)
    if json:
        print_json(score_summary.compared_json(verdict, found.sets))
    else:
        score_summary.print_compared(SafeConsole(), verdict, found.sets, seeded=found.seeded)
    if out is not None:
        from tiebreak.exchange.scores_folder import write_scores_folder

        page = write_scores_folder(out, verdict, found)
        if not json:
            print_line(page)


def _judge(scores: str, found: ScoreTable, asked: TableQuestion) -> Verdict:
    from tiebreak.verdict.table_verdict import table_verdict

    try:
        return table_verdict(found.sets, asked)
    except TiebreakError as error:
        left_out = [note for note in found.notes if note.startswith("left out")]
        raise TiebreakError(": ".join([scores, str(error), *left_out])) from None


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal, for folders with many files."""
    import sys

    from rich.progress import Progress as Bars

    from tiebreak.report.terminal.safe_console import SafeConsole

    with Bars(console=SafeConsole(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bars:
        tasks = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(f"reading {what}", total=total)
            bars.update(tasks[what], completed=done)

        yield show
