"""What programs leave behind: read where it is right, refused in one line where it is not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.errors import TiebreakError
from tiebreak.program.score_files import (
    MissingMetricError,
    Scores,
    end_last_line,
    read_curves,
    read_outcomes,
    read_scores_file,
)
from tiebreak.study.program_keys import Program

PROGRAM = Program(command=("x",), epochs="m.jsonl", outcomes="o.npz")
GOOD = {"val": {"accuracy": 1}, "test": {"accuracy": 0.5, "loss": 2}}


def scores(out: Path, content: Any, *, needs_val: bool = False) -> Scores:
    (out / "scores.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return read_scores_file(out, PROGRAM, ("accuracy", "loss"), needs_val=needs_val)


def test_scores(tmp_path: Path) -> None:
    found = scores(tmp_path, GOOD, needs_val=True)
    assert (found.val, found.test) == ({"accuracy": 1.0}, {"accuracy": 0.5, "loss": 2.0})
    assert found.not_finite() == ""
    assert scores(tmp_path, {"test": GOOD["test"]}).val == {}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_no_finite_number_is_a_result(tmp_path: Path, value: float) -> None:
    assert "test accuracy" in scores(tmp_path, {"test": {"accuracy": value, "loss": 1}}).not_finite()


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", "JSON"),
        ("{", "JSON"),
        ("[" * 100_000, "JSON"),
        ([1], "object"),
        ({"test": 0.5}, "test"),
        ({"test": {"accuracy": "0.5"}}, "accuracy"),
        ({"test": {"accuracy": None}}, "accuracy"),
        ({"test": {"accuracy": True}}, "accuracy"),
        ({"test": {"accuracy": [1]}}, "accuracy"),
        ({"test": {"accuracy": 1, "\ud800": 1}}, "no name"),  # half of a surrogate pair: no store can hold it
        ({"test": {"accuracy": 1, "\x1b[31m": 1}}, "no name"),
        ({"test": {"accuracy": 1} | {f"m{i}": 1 for i in range(1000)}}, "1,001 metrics"),
    ],
)
def test_malformed_scores(tmp_path: Path, content: Any, word: str) -> None:
    with pytest.raises(TiebreakError, match=word) as error:
        scores(tmp_path, content)
    assert not isinstance(error.value, MissingMetricError)
    assert str(error.value).isprintable()


def test_scores_without_the_metric(tmp_path: Path) -> None:
    with pytest.raises(MissingMetricError, match=r"no test\.accuracy \(it has acc"):
        scores(tmp_path, {"test": {"acc": 1, "loss": 1}})
    with pytest.raises(MissingMetricError, match=r"no test\.accuracy"):
        scores(tmp_path, {"val": {"accuracy": 1}})
    with pytest.raises(MissingMetricError, match=r'no test\.accuracy .*; write {"test": {"accuracy": …}}$'):
        scores(tmp_path, {"accuracy": 0.9})
    with pytest.raises(MissingMetricError, match=r"no val\.accuracy, which chooses"):
        scores(tmp_path, {"test": GOOD["test"]}, needs_val=True)


def test_files_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match="no scores"):
        read_scores_file(tmp_path, PROGRAM, ("accuracy",), needs_val=False)
    (tmp_path / "scores.json").symlink_to("/etc/passwd")
    with pytest.raises(TiebreakError, match="symbolic link"):
        read_scores_file(tmp_path, PROGRAM, ("accuracy",), needs_val=False)


def test_curves(tmp_path: Path) -> None:
    lines = [{"epoch": 1, "val": {"loss": 3}, "test_loss": 1}, {"epoch": 2, "val_loss": 2, "lr": 0.1, "note": "x"}]
    again = {"epoch": 2, "val_loss": 1.5}
    text = "\n".join(map(json.dumps, [*lines, again])) + '\n{"epoch": 3, "va'
    (tmp_path / "m.jsonl").write_text(text)
    assert read_curves(tmp_path, PROGRAM) == [{"val_loss": 3.0}, {"val_loss": 1.5}]
    (tmp_path / "m.jsonl").write_text('{"val_loss": 1}\nnonsense\n')
    with pytest.raises(TiebreakError, match="line 2"):
        read_curves(tmp_path, PROGRAM)
    for line, word in (('{"\\ud800": 1}', "no name"), ('{"a": ' * 50 + "1" + "}" * 50, "deep")):
        (tmp_path / "m.jsonl").write_text(f"{line}\n")
        with pytest.raises(TiebreakError, match=word):
            read_curves(tmp_path, PROGRAM)


@pytest.mark.parametrize(
    ("left", "curve"),
    [
        ('{"epoch": 0, "loss": 3}\n{"epoch": 1, "lo', [3, 2]),  # cut off
        ('{"epoch": 0, "loss": 3}\n{"epoch": 1, "loss": 9}', [3, 2]),  # whole, without a line feed
        ('{"epoch": 0, "loss": 3}\n{"epoch": 1, "loss": 9}\n{"epoch": 2, "loss": 9}\n', [3, 2]),  # was further
        ('{"epoch": 0.0, "loss": 3}\n{"epoch": 1.0, "loss": 9}\n', [3, 2]),
        ('{"ep', [2]),
    ],
)
def test_what_an_interrupted_run_has_left_is_continued(tmp_path: Path, left: str, curve: list[float]) -> None:
    (tmp_path / "m.jsonl").write_text(left)
    end_last_line(tmp_path, PROGRAM)
    with (tmp_path / "m.jsonl").open("a") as file:
        file.write('{"epoch": 1, "loss": 2}\n')
    assert [each["loss"] for each in read_curves(tmp_path, PROGRAM)] == curve


def test_curves_that_cannot_be_read_do_not_stop_the_study(tmp_path: Path) -> None:
    end_last_line(tmp_path, PROGRAM)
    (tmp_path / "m.jsonl").mkdir()
    end_last_line(tmp_path, PROGRAM)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for read in (lambda out: scores(out, text), lambda out: read_curves(out, PROGRAM)):
            (Path(folder) / "m.jsonl").write_text(text, "utf-8", errors="surrogatepass")
            line = ""
            try:
                read(Path(folder))
            except TiebreakError as error:
                line = str(error)
            assert line == "" or line.isprintable()


def test_outcomes_must_make_the_score(tmp_path: Path) -> None:
    found = Scores(test={"accuracy": 0.5, "f1": 0.7})
    assert "not there" in read_outcomes(tmp_path, PROGRAM, found)[1]
    np.savez(tmp_path / "o.npz", accuracy=np.array([True, False]), f1=np.zeros(2), more=np.zeros((2, 2)))
    outcomes, left_out = read_outcomes(tmp_path, PROGRAM, found)
    assert outcomes["accuracy"].tolist() == [1.0, 0.0]
    assert list(outcomes) == ["accuracy"]
    assert "f1" in left_out
    np.savez(tmp_path / "o.npz", accuracy=np.array([None, 1], dtype=object))
    with pytest.raises(TiebreakError):
        read_outcomes(tmp_path, PROGRAM, found)
