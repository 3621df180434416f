"""Commands on results: `verdict`, `report`, `status`, `check` and `use` of a results folder.

Everything heavy is imported inside the commands.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tiebreak.cli.output import print_error, print_json, print_line
from tiebreak.errors import TiebreakError

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A results folder: the --out of `tiebreak run`.")]


def verdict(
    folder: FolderArgument,
    json: Annotated[bool, typer.Option("--json", help="Print verdict.json, for programs.")] = False,
) -> None:
    """Show the answer of a results folder, from the records it holds now."""
    from tiebreak.outcome import open_result
    from tiebreak.report.terminal import summaries
    from tiebreak.report.terminal.safe_console import SafeConsole

    result = open_result(folder)
    if json:
        print_json(result.verdict.to_json())
    else:
        written = result.report if result.report.is_file() else None
        summaries.print_verdict(SafeConsole(), result.verdict, written, folder)


def report(
    folder: FolderArgument,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the report there; the results stay as they are.")
    ] = None,
) -> None:
    """Rewrite report.html and report.md from the records, complete or not."""
    from tiebreak import api
    from tiebreak.report.page import document

    if out is None:
        print_line(api.conclude(folder, rewrite=True).report)
    else:
        result = api.open_result(folder)
        print_line(document.write_report(out, result.study, result.plan, result.records, result.verdict))


def open_report(folder: FolderArgument) -> None:
    """Open the report of a results folder in the browser; where there is none, print its path."""
    from tiebreak.report.page.document import HTML_FILE
    from tiebreak.system import open_in_browser

    page = folder / HTML_FILE
    if not folder.is_dir():
        raise TiebreakError(f"{folder}: no such folder; give the --out folder of `tiebreak run`")
    if not page.is_file():
        raise TiebreakError(f"{folder}: no {HTML_FILE}; `tiebreak report {folder}` writes it from the records")
    open_in_browser(page)


def status(folder: FolderArgument) -> None:
    """Show which runs are done, diverged, failed or missing. Safe to use during a run."""
    from tiebreak.report.terminal.safe_console import SafeConsole
    from tiebreak.report.terminal.status_table import print_status
    from tiebreak.results.folder import read_training_state
    from tiebreak.results.misfit import explain_misfit
    from tiebreak.system import collector_paused

    plan, state = read_training_state(folder)
    with collector_paused(), explain_misfit(plan.study):
        print_status(SafeConsole(), plan, state)
    for line in state.damaged:
        print_error(f"left out: {line}; `tiebreak run` with your study makes it again")


def check(folder: FolderArgument) -> None:
    """Compare a results folder with the digests in its store: files, records, checkpoints. Safe to use during a run."""
    from tiebreak import api

    checked = api.check(folder)
    for note in checked.notes:
        print_line(note)
    for problem in checked.problems:
        print_error(problem)
    if checked.problems:
        raise typer.Exit(2)
    print_line(f"{folder}: as written, by {checked.compared} digests: {checked.what}")


def use(
    folder: FolderArgument,
    given: Annotated[
        str,
        typer.Argument(metavar="INPUT", help="An image or sound file, a sentence, a text to continue, a node."),
    ],
    arm: Annotated[str | None, typer.Option(metavar="NAME", help="Default: the best arm on validation.")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Default: the arm's best run on validation.")] = None,
    beam: Annotated[
        int | None, typer.Option(metavar="N", help="Sentences and speech: beam width of the decoder.")
    ] = None,
    show_attention: Annotated[bool, typer.Option(help="Sentences: show the attention weights.")] = False,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="Texts: below 1, likely words are favoured.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(metavar="K", help="Texts: sample from the K likeliest words.")] = None,
    top_p: Annotated[
        float | None, typer.Option(metavar="P", help="Texts: sample from the likeliest words with total probability P.")
    ] = None,
    n: Annotated[int | None, typer.Option("--n", metavar="N", help="Texts: how many to write.")] = None,
    words: Annotated[int | None, typer.Option(metavar="N", help="Texts: words at most; default 100.")] = None,
    sampling_seed: Annotated[int | None, typer.Option(metavar="N", help="Texts: seed of the sampling.")] = None,
) -> None:
    """Apply a trained network: classify an image, transcribe speech, translate a sentence, continue a text.

    Designs of your own are run from the copy in the folder: of a stranger's folder, read designs.py first.
    """
    from tiebreak.cli.use import use as use_run
    from tiebreak.report.terminal import listings
    from tiebreak.report.terminal.safe_console import SafeConsole

    options = {"beam": beam, "show_attention": show_attention or None, "temperature": temperature, "top_k": top_k}
    options |= {"top_p": top_p, "n": n, "words": words, "sampling_seed": sampling_seed}
    how = {name: value for name, value in options.items() if value is not None}
    used = use_run(folder, given, arm=arm, seed=seed, how=how, notify=print_error)
    listings.print_reply(SafeConsole(), used.reply, f"{used.arm} ({used.run.label})")
