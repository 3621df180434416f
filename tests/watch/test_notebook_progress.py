"""Progress in a notebook: one output, updated in place, seldom; texts of a stranger are escaped."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from support import watched
from tiebreak.cli import progress
from tiebreak.report.terminal.training_display import TrainingProgress, TrainingState
from tiebreak.watch.notebook_progress import PAUSE, NotebookProgress, live_html
from tiebreak.watch.watched_folder import WatchedFolder


class Outputs:
    """Stands for IPython's display, and is its own handle."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.updates = 0

    def display(self, content: Any, *, display_id: bool) -> Outputs:
        assert display_id
        self.shown.append(content.data)
        return self

    def update(self, content: Any) -> None:
        self.shown[-1] = content.data
        self.updates += 1


def state(done: int = 1) -> TrainingState:
    return TrainingState(share=done / 4, epochs=done, total_epochs=4, done=done, diverged=0, failed=0, runs=4)


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> Outputs:
    found, shown = pytest.importorskip("IPython.display"), Outputs()
    monkeypatch.setattr(found, "display", shown.display)
    return shown


def test_one_output_is_updated_seldom_and_at_the_end(tmp_path: Path, outputs: Outputs) -> None:
    watched.make_folder(tmp_path / "one", ended=3)
    now, console = [0.0], Console(file=io.StringIO())
    clock: Callable[[], float] = lambda: now[0]  # noqa: E731
    shown = NotebookProgress(tmp_path / "one", console, clock)
    for batch in range(2):  # of seeds
        with shown:
            shown.show(state())
            for _ in range(100):
                shown.show(state(2))
            now[0] += PAUSE
            shown.show(state(3))
            shown.note("a run failed")
            shown.show(state(4))
        assert len(outputs.shown) == 1
        assert outputs.updates == 2 + 3 * batch
    assert "4 of 4 runs done" in outputs.shown[0]
    assert outputs.shown[0].count("<figure>") == 3  # the interval, two curves
    assert console.file.getvalue() == "a run failed\n" * 2  # type: ignore[attr-defined]


def test_a_strangers_texts_are_escaped(tmp_path: Path) -> None:
    pair = {"a": "pool", "b": "strided", "name": "<script>alert(1)</script>"}
    watched.make_folder(tmp_path / "one", ended=3, comparisons=[pair])
    folder = WatchedFolder(tmp_path / "one")
    folder.refresh()
    shown = live_html(state(), "<b>soon</b>", folder.snapshot)
    assert "&lt;script&gt;alert(1)" in shown
    assert "<script" not in shown
    assert "<b>" not in shown


def test_a_folder_without_records_shows_the_progress(tmp_path: Path) -> None:
    folder = WatchedFolder(tmp_path)
    folder.refresh()
    assert "1 of 4 runs done" in live_html(state(), "starting", folder.snapshot)


@pytest.mark.parametrize("notebook", [False, True])
def test_only_a_notebook_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notebook: bool) -> None:
    monkeypatch.setattr(progress, "in_notebook", lambda: notebook)
    listener = progress.progress_listener(tmp_path)
    assert isinstance(listener._new_display(), NotebookProgress if notebook else TrainingProgress)
