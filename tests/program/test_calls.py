"""A function's result as the files that a program leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiebreak.errors import TiebreakError
from tiebreak.program.calls import EPOCHS, OUTCOMES, SCORES, call
from tiebreak.program.score_files import read_curves
from tiebreak.study.program_keys import Program

SCORED = {"val": {"accuracy": np.float32(0.5)}, "test": {"accuracy": 1}}


def plain(seed: int, width: int) -> dict[str, Any]:
    assert (seed, width) == (3, 64)
    return {**SCORED, "outcomes": {"accuracy": [True, True]}}


def with_folder(seed: int, width: int, out: Path) -> dict[str, Any]:
    (out / "own").write_text("x")
    return SCORED


def epochs(seed: int, width: int) -> Iterator[dict[str, Any]]:
    yield {"train_loss": 2.0}
    yield {"train_loss": np.float64("nan"), **SCORED}


def epochs_and_scores(seed: int, width: int) -> Generator[dict[str, Any], None, dict[str, Any]]:
    yield {"train_loss": 2.0}
    return SCORED


@pytest.mark.parametrize("function", [plain, with_folder, epochs, epochs_and_scores])
def test_scores_are_written_down(function: Callable[..., Any], tmp_path: Path) -> None:
    call(function, {"width": 64}, seed=3, out=tmp_path)
    assert json.loads((tmp_path / SCORES).read_text()) == {"val": {"accuracy": 0.5}, "test": {"accuracy": 1}}
    assert (tmp_path / EPOCHS).exists() == (function in (epochs, epochs_and_scores))
    assert (tmp_path / OUTCOMES).exists() == (function is plain)
    assert (tmp_path / "own").exists() == (function is with_folder)


@pytest.mark.parametrize("result", [None, 0.5, {"accuracy": 1}, {"test": 0.5}])
def test_what_is_no_score(result: Any, tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match='"test"'):
        call(lambda seed: result, {}, seed=0, out=tmp_path)
    assert not (tmp_path / SCORES).exists()


def resumes(seed: int, width: int, out: Path) -> Iterator[dict[str, Any]]:
    first = not (out / "state").exists()
    (out / "state").write_text("1")
    for epoch in np.arange(0 if first else 1, 3):
        if first and epoch == 2:
            raise ValueError("crash")
        yield {"epoch": epoch, "train_loss": 1.0, **SCORED}


def test_epochs_of_an_earlier_attempt_are_kept(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="crash"):
        call(resumes, {"width": 64}, seed=3, out=tmp_path)
    call(resumes, {"width": 64}, seed=3, out=tmp_path)
    curves = read_curves(tmp_path, Program(command=("x",), epochs=EPOCHS))
    assert len(curves) == 3
