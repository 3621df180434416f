"""`tb.compare`: functions as arms, in worker processes or here, with the same folder, report and resume."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiebreak as tb
from tiebreak import api
from tiebreak.drive.messages import Message, Note, RunEnded, TrainingStarted

ARMS = {"narrow": {"width": 64}, "wide": {"width": 256}}
SCRIPT = """
import random
import tiebreak as tb

def train(seed, width, lr):
    assert isinstance(width, int)
    score = 0.5 + width / 1000 - lr + random.Random(seed).random() / 100
    yield {"train": {"loss": 1.0}, "val": {"accuracy": score}}
    return {"val": {"accuracy": score}, "test": {"accuracy": score + 0.001}, "outcomes": {"accuracy": [score + 0.001]}}

if __name__ == "__main__":
    result = tb.compare(train, arms={"narrow": {"width": 64}, "wide": {"width": 256}}, grid={"lr": [0.1, 0.01]},
                        seeds=6, metric="accuracy", margin=0.005, out="out", workers=4)
    print(result.verdict.primary.verdict, result.verdict.designs[0].setting)
"""


def compare(out: Path, **more: Any) -> tuple[api.Result, list[Message]]:
    calls = more.pop("calls", [])

    def train(seed: int, width: int, lr: float = 0.1) -> dict[str, Any]:
        calls.append((seed, width, lr))
        print("noise on the screen")
        score = width / 1000 + lr + 0.001 * ((seed * 7) % 5)
        return {"val": {"accuracy": score}, "test": {"accuracy": score + 0.01}}

    messages: list[Message] = []
    options: dict[str, Any] = {"metric": "accuracy", "margin": 0.005, "arms": ARMS, "seeds": 6, **more}
    return tb.compare(options.pop("train", train), out=out, listen=messages.append, **options), messages


def test_a_closure_runs_here_and_is_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[Any] = []
    result, messages = compare(tmp_path / "out", grid={"lr": np.linspace(0.1, 0.2, 2)}, calls=calls)
    assert len(calls) == 24
    assert result.verdict.primary.verdict == "b"
    assert result.verdict.designs[0].setting == {"lr": 0.2}
    assert "Which is better" in result._repr_html_()
    assert any(isinstance(each, Note) and "this process" in each.text and "inside" in each.text for each in messages)
    assert "noise" not in capsys.readouterr().out
    again, messages = compare(tmp_path / "out", grid={"lr": [0.1, 0.2]}, calls=calls)
    assert len(calls) == 24
    assert again.verdict == result.verdict
    assert api.check(tmp_path / "out").problems == []
    started = next(each for each in messages if isinstance(each, TrainingStarted))
    assert (len(started.runs), started.stored) == (0, 24)


def test_seeds_come_in_batches_until_every_pair_is_decided(tmp_path: Path) -> None:
    calls: list[Any] = []
    result, _ = compare(tmp_path / "out", seeds=None, until_decided=True, max_seeds=20, calls=calls)
    assert result.verdict.stopping is not None
    assert result.verdict.stopping.reason == "decided"
    assert len(calls) == 2 * result.verdict.seeds < 40


def test_a_function_of_a_script_runs_in_worker_processes(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "b {'lr': 0.01}"
    assert "script:train" in done.stdout
    result = api.open_result(tmp_path / "out")
    assert result.verdict.primary.examples_low is None  # one test example has no spread
    assert len(result.records.epochs) == 24


def test_functions_by_arm_and_a_baseline(tmp_path: Path) -> None:
    def constant(score: float) -> Any:
        return lambda seed: {"test": {"rmse": score + 0.001 * seed}}

    trains = {name: constant(score) for name, score in (("a", 0.1), ("b", 0.2), ("c", 0.3))}
    result, _ = compare(tmp_path / "out", train=trains, arms=None, metric="rmse")  # three closures with one name
    assert [round(item.difference or 0, 3) for item in result.verdict.comparisons] == [-0.1, -0.2, -0.1]
    arms = {name: {"score": score} for name, score in (("a", 0.1), ("b", 0.2), ("c", 0.3))}
    result, _ = compare(
        tmp_path / "baseline",
        train=lambda seed, score: {"test": {"rmse": score * (1 + 0.01 * seed)}},
        arms=arms,
        metric="rmse",
        baseline="a",
        seeds=8,
    )
    assert [(item.a, item.b, item.verdict) for item in result.verdict.comparisons] == [("b", "a", "b"), ("c", "a", "b")]


def test_an_exception_is_a_failed_run(tmp_path: Path) -> None:
    def train(seed: int, width: int) -> dict[str, Any]:
        return {"test": {"accuracy": 1 / seed}}

    _, messages = compare(tmp_path / "out", train=train, seeds=2)
    ended = [each.record for each in messages if isinstance(each, RunEnded)]
    assert [record.status for record in ended] == ["failed", "done", "failed", "done"]
    assert "ZeroDivisionError" in ended[0].reason


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"arms": {"one": {"width": 1}}}, "two"),
        ({"arms": {"a": {"width": 1}, "b": {"height": 1}}}, "'height'"),
        ({"arms": {"a": {"width": 1}, "b": {"width": [2]}}}, "width"),
        ({"grid": {"depth": [1]}}, "'depth'"),
        ({"grid": {"lr": ["high"]}}, "numbers"),
        ({"metric": "magic"}, "goal"),
        ({"margin": 0}, "margin"),
        ({"train": 5}, "function"),
        ({"timeout": "1 h"}, "timeout"),
        ({"baseline": "wid"}, "'wide'"),
        ({"basline": "wide"}, "'baseline'"),
        ({"until_decided": True}, "max_seeds=6"),  # and six seeds
        ({"seeds": None, "max_seeds": 8}, "until_decided"),
        ({"seeds": None, "until_decided": "no"}, "True or False"),
        ({"seeds": None, "until_decided": True, "max_seeds": 3}, "at least 6"),
    ],
)
def test_bad_calls_write_nothing(tmp_path: Path, changes: dict[str, Any], word: str) -> None:
    with pytest.raises(tb.TiebreakError, match=word):
        compare(tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()


def test_the_folder_of_a_closure_cannot_be_continued_elsewhere(tmp_path: Path) -> None:
    compare(tmp_path / "out", seeds=1)
    study = tb.Study.load(str(tmp_path / "out" / "study.toml")).changed(seeds=2)
    with pytest.raises(tb.TiebreakError, match=r"tb\.compare"):
        tb.run(study, tmp_path / "out", listen=lambda message: None, allow_program=True)
