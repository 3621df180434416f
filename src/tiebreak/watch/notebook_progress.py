"""The progress of a study in a notebook: how far it is, the verdict so far, and the page's charts, in one output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.text import Text

from tiebreak.report.figures import drawing
from tiebreak.report.terminal.training_display import TimeLeft, TrainingState
from tiebreak.text import printable
from tiebreak.watch.notebook_figures import curve_figure, interval_figure
from tiebreak.watch.watched_folder import WatchedFolder

PAUSE = 2.0  # seconds between two updates
SPLITS = {"val": "validation", "train": "training"}
STYLE = """<style>
.tiebreak-live { max-width: 60rem; --paper: var(--jp-layout-color0, #fff); }
.tiebreak-live p { margin: .3em 0; }
.tiebreak-live progress { width: 16rem; max-width: 100%; margin-right: .8em; }
.tiebreak-live .figures { display: flex; flex-wrap: wrap; gap: .75em 2em; }
.tiebreak-live figure { flex: 1 1 20rem; max-width: 28rem; margin: 0; }
.tiebreak-live .chart { display: block; width: 100%; height: auto; font-size: 12px; }
.tiebreak-live .mark { vertical-align: -1px; margin-left: .8em; }
</style>"""


class NotebookProgress:
    """Shows the progress of training in the output of a cell, and updates it in place every two seconds at most."""

    def __init__(self, folder: Path, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._console, self._clock = WatchedFolder(folder), console, clock
        self._state: TrainingState | None = None
        self._time, self._next = TimeLeft(clock), 0.0
        self._output: Any = None  # IPython's handle: one output for all batches of seeds

    def __enter__(self) -> Self:
        """Training begins."""
        self._time, self._next = TimeLeft(self._clock), 0.0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the last state in the output."""
        if self._state is not None:
            self._folder = WatchedFolder(self._folder.path)  # reads at once, whenever the last reading was
            self._update()

    def show(self, state: TrainingState) -> None:
        """Show this state, if the last one has been there for a while."""
        self._state = state
        self._time.see(state)
        if self._clock() >= self._next:
            self._update()

    def note(self, text: str) -> None:
        """A line that stays."""
        self._console.print(Text(printable(text)))

    def _update(self) -> None:
        notebook: Any = import_module("IPython.display")  # without types
        assert self._state is not None
        self._folder.refresh()  # reads seldom enough by itself; through SQLite only, as this process also writes there
        content = notebook.HTML(live_html(self._state, self._time.words(self._state), self._folder.snapshot))
        if self._output is None:
            self._output = notebook.display(content, display_id=True)
        else:
            self._output.update(content)
        self._next = self._clock() + PAUSE


def live_html(state: TrainingState, left: str, snapshot: Mapping[str, Any]) -> str:
    """The output: progress in words, the verdict so far, the charts."""
    done = f"{state.progress()}, {state.ended_runs()}, {left}"
    bar = f'<progress max="1" value="{min(state.share, 1.0):.3f}" aria-label="progress"></progress>'
    parts = [f'{STYLE}<div class="tiebreak-live"><p>{bar}{escape(done)}</p>']
    if snapshot["verdict"]:
        parts.append(f"<p>So far: {escape(snapshot['verdict'])} <em>{_caution(snapshot)}</em></p>")
    figures = "".join(f"<figure><figcaption>{title}</figcaption>{svg}</figure>" for title, svg in _figures(snapshot))
    return "".join([*parts, f'<div class="figures">{figures}</div></div>'])


def _caution(snapshot: Mapping[str, Any]) -> str:
    """Why this is not the last word; the verdict's own sentence says how many seeds are missing."""
    free = snapshot["final"] or snapshot["until_decided"]
    return "" if free else "Looking early is free only with until_decided=True."


def _figures(snapshot: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The charts with their headings, escaped."""
    for comparison in snapshot["comparisons"][:1]:
        if svg := interval_figure(comparison):
            yield escape(f"Difference in {comparison['unit']}: {comparison['label']}"), svg
    places = {name: place for place, name in enumerate(snapshot["arms"])}
    panels: dict[str, list[Mapping[str, Any]]] = {}
    for curve in snapshot["curves"]:
        panels.setdefault(f"{SPLITS.get(curve['split'], curve['split'])} {curve['metric']}", []).append(curve)
    for title, curves in panels.items():
        if svg := curve_figure(curves, places, title):
            yield escape(title) + _legend([curve["arm"] for curve in curves], places), svg


def _legend(arms: Sequence[str], places: Mapping[str, int]) -> str:
    return "".join(
        f'<svg class="mark" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path '
        f'd="{drawing.swatch(places[arm])}" fill="{drawing.colour(places[arm])}"/></svg> {escape(printable(arm))}'
        for arm in dict.fromkeys(arms)
    )
