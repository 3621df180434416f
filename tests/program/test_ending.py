"""How a run ended: done, diverged or failed, with the reason and the last lines of its output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support import own_program
from tiebreak.drive.messages import RunEnded
from tiebreak.program.ending import Reader, describe
from tiebreak.program.score_files import MissingMetricError
from tiebreak.program.supervisor import Ended
from tiebreak.study.schema import Study

GOOD = {"val": {"accuracy": 0.8}, "test": {"accuracy": 0.7}}


def ended(out: Path, scores: Any, code: int = 0, curves: str = "", made: Study | None = None) -> RunEnded:
    made = made or own_program.study(out, program={"epochs": "m.jsonl"})
    assert made.program is not None
    if scores is not None:
        (out / "scores.json").write_text(json.dumps(scores))
    if curves:
        (out / "m.jsonl").write_text(curves)
    how = Ended(code=code, seconds=6.0)
    return Reader(made, made.program).record(own_program.one_run(made), out, how, "first\nlast\n")


def test_a_run_that_is_done(tmp_path: Path) -> None:
    message = ended(tmp_path, GOOD, curves='{"val_loss": 2}\n{"val_loss": 1}\n')
    assert (message.record.status, message.record.epoch, message.record.output) == ("done", 2, "")
    assert message.finals[0].metrics == {"accuracy": 0.7, "val_accuracy": 0.8}
    assert [epoch.seconds["train"] for epoch in message.epochs] == [3.0, 3.0]
    (only,) = ended(tmp_path, GOOD, made=own_program.study(tmp_path)).epochs
    assert (only.metrics, only.seconds) == ({}, {"train": 6.0})


@pytest.mark.parametrize(
    ("scores", "code", "words"),
    [
        (GOOD, 3, ("code 3", "last")),
        (GOOD, -9, ("signal 9", "memory")),
        (None, 0, ("no scores",)),
        ([], 0, ("object",)),
    ],
)
def test_a_run_that_failed(tmp_path: Path, scores: Any, code: int, words: tuple[str, ...]) -> None:
    message = ended(tmp_path, scores, code)
    assert (message.record.status, message.finals, message.epochs) == ("failed", (), ())
    assert all(word in message.record.reason for word in words)
    assert message.record.output == "first\nlast\n"


@pytest.mark.parametrize(
    ("scores", "code", "curves"),
    [({"test": {"accuracy": float("nan")}}, 0, ""), (None, 1, '{"train_loss": 1}\n{"train_loss": NaN}\n')],
)
def test_no_number_is_divergence(tmp_path: Path, scores: Any, code: int, curves: str) -> None:
    record = ended(tmp_path, scores, code, curves).record
    assert record.status == "diverged"
    assert "nan" in record.reason


def test_without_val_only_one_setting_can_be_compared(tmp_path: Path) -> None:
    scores = {"test": {"accuracy": 0.7}}
    assert ended(tmp_path, scores).record.status == "done"
    tuned = own_program.study(
        tmp_path, grid={"n": [1, 2]}, program={"command": [*own_program.COMMAND, "{n}"], "epochs": "m.jsonl"}
    )
    with pytest.raises(MissingMetricError, match=r"val\.accuracy"):
        ended(tmp_path, scores, made=tuned)


def test_the_time_limit_is_named(tmp_path: Path) -> None:
    made = own_program.study(tmp_path, program={"timeout": "2 h"})
    assert made.program is not None
    assert "2 h" in describe(Ended(code=-15, seconds=1, timed_out=True), made.program)
    here = made.program.model_copy(update={"in_process": True})
    assert "exception" in describe(Ended(code=1, seconds=1), here)  # there was no process with an exit code
