"""Smaller outputs of the terminal: answers of a network, data sets, a download."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.text import Text

from tiebreak.report import formatting
from tiebreak.tasks.reply import AttentionWeights, Reply
from tiebreak.text import printable

SHOWN_ANSWERS = 10
SHADES = " ░▒▓█"
ATTENTION_LEGEND = (
    "attention: a row for each letter of the answer, a column for each letter of the input; a darker cell is a larger "
    f"weight, in steps of {100 // len(SHADES)} % from '{SHADES[0]}' (below {100 // len(SHADES)} %) to '{SHADES[-1]}'"
)


def print_reply(console: Console, reply: Reply, who: str) -> None:
    """The answers of a trained network, best first."""
    shown = [(printable(answer.text), answer.probability) for answer in reply.answers[:SHOWN_ANSWERS]]
    width = max((len(text) for text, _ in shown), default=0)
    for number, (text, probability) in enumerate(shown):
        share = "" if probability is None else f"  {100 * probability:5.1f} %  {'█' * round(30 * probability)}"
        console.print(Text(f"{text:<{width}}{share}".rstrip(), style="bold" if number == 0 else ""))
    if len(reply.answers) > SHOWN_ANSWERS:
        console.print(Text(f"and {len(reply.answers) - SHOWN_ANSWERS} more", style="dim"))
    if reply.attention is not None:
        console.print(Text(_attention_map(reply.attention)))
        console.print(Text(ATTENTION_LEGEND, style="dim"))
    console.print(Text(printable(f"answered by {who}{f'; {reply.note}' if reply.note else ''}"), style="dim"))


def _attention_map(attention: AttentionWeights) -> str:
    """Attention weights as shades: a row for each symbol of the answer, a column for each symbol of the input."""
    columns = "".join(map(_first_letter, attention.columns))
    lines = [f"   {columns}"]
    for name, weights in zip(attention.rows, attention.weights, strict=True):
        shades = "".join(SHADES[min(len(SHADES) - 1, int(weight * len(SHADES)))] for weight in weights)
        lines.append(f" {_first_letter(name)} {shades}".rstrip())
    return "\n".join(lines)


def _first_letter(name: str) -> str:
    return name[:1] if name[:1].isprintable() and name else " "


def print_data(console: Console, rows: Iterable[tuple[str, str, str, str]]) -> None:
    """Data sets: name, what it is, licence, where it is."""
    names_report = False
    for name, line, licence, found in rows:
        names_report = names_report or "report R" in line
        console.print(Text.assemble((name, "bold"), f"  {line}"))
        console.print(Text(f"  {licence}; {found}", style="dim"), soft_wrap=True)
    if names_report:
        console.print()
        console.print(Text(formatting.reports_line(formatting.REPORTS), style="dim"))


class _Bar:
    """The progress-bar interface that pooch expects, on a rich display."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=None)
        self._total = 0

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self._total

    @total.setter
    def total(self, count: int) -> None:
        self._total = count
        self._progress.update(self._task, total=count or None)

    def update(self, count: int) -> None:
        """Add the bytes that have arrived."""
        self._progress.advance(self._task, count)

    def reset(self) -> None:
        """Begin again."""
        self._progress.reset(self._task)

    def close(self) -> None:
        """The download has ended; the display is closed by its owner."""


@contextmanager
def download_bar(console: Console, name: str) -> Iterator[_Bar]:
    """A live display of one download."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as progress:
        yield _Bar(progress, name)
