from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak.errors import TiebreakError
from tiebreak.exchange.score_sources import read_scores


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scores.csv"
    path.write_bytes(text.encode("utf-8"))
    return path


def complaint(path: Path) -> str:
    with pytest.raises(TiebreakError) as caught:
        read_scores(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


def test_scores_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "arm,seed,score\nb,1,.5\na,1,0.25\nb,0,1e-3\na,x7,-2\n")
    found = read_scores(path)
    assert found == {"b": {1: 0.5, 0: 0.001}, "a": {1: 0.25, "x7": -2.0}}
    assert list(found) == ["b", "a"]


@pytest.mark.parametrize(
    "text",
    [
        "seed,epoch,score,arm\n0,9,1.5,a\n0,9,2.5,b\n",
        "\ufeffarm,seed,score\r\na,0,1.5\r\nb,0,2.5\r\n",
        "Arm , SEED, Score\n a , 0 , 1.5 \n b , 0 , 2.5 \n",
        '"arm","seed","score"\n"a","0","1.5"\n\n,,\n"b","0","2.5"',
    ],
    ids=["any order and extra columns", "as Excel saves it", "spaces and capitals", "quotes and empty lines"],
)
def test_the_same_scores_however_they_are_written(tmp_path: Path, text: str) -> None:
    assert read_scores(written(tmp_path, text)) == {"a": {0: 1.5}, "b": {0: 2.5}}


def test_names_may_hold_commas_and_line_breaks(tmp_path: Path) -> None:
    path = written(tmp_path, 'arm,seed,score\n"pool, 2×2",0,1\n"two\nlines",0,2\nc,0,oops\n')
    assert complaint(path).startswith(", line 5: the score 'oops'")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", "", "empty.* arm, seed, score"),
        ("\n \n", "", "empty.* arm, seed, score"),
        ("arm,seed,score\n", "", "no scores"),
        ("arm,seed,score\na,0,1\na,1,2\n", "", "only one arm, 'a'"),
        ("arm,seed,scores\na,0,1\n", ", line 1", "no column 'score'.*--score.*did you mean 'scores'"),
        ("arm,seed,accuracy\na,0,1\n", ", line 1", "no column 'score'.*valid: accuracy"),
        ("arm;seed;score\na;0;1\n", ", line 1", "commas"),
        ("arm,seed,score,score\na,0,1,2\n", ", line 1", "2 columns.*'score'"),
        ("arm,seed,score\na,0\n", ", line 2", "2 cells.* 3"),
        ("arm,seed,score\na,0,1\nb,0,\n", ", line 3", "score ''.*0.93"),
        ('arm,seed,score\na,0,"0,93"\n', ", line 2", "score '0,93'.*0.93"),
        ("arm,seed,score\n\na,0,1\na,00,2\n", ", line 4", "'a'.*second score.*seed 0"),
        ("arm,seed,score\n,0,1\n", ", line 2", "no arm"),
        ("arm,seed,score\na,,1\n", ", line 2", "no seed"),
        ('arm,seed,score\na,0,"1\n', ", line 2", "CSV.*quotes"),
    ],
)
def test_bad_files_get_one_line_with_the_place_and_the_cure(tmp_path: Path, text: str, place: str, words: str) -> None:
    found = complaint(written(tmp_path, text))
    assert found.startswith(f"{place}: ")
    assert re.search(words, found)
    assert "\n" not in found


@pytest.mark.parametrize("score", ["nan", "-inf", "1e200"])
def test_scores_that_are_not_finite_are_refused(tmp_path: Path, score: str) -> None:
    found = complaint(written(tmp_path, f"arm,seed,score\na,0,{score}\n"))
    assert found.startswith(f", line 2: the score {score!r}")
    assert "remove the line" in found


def test_a_file_without_a_header_says_what_is_missing(tmp_path: Path) -> None:
    assert "no column 'arm'" in complaint(written(tmp_path, "a,0,1\nb,0,2\n"))


def test_a_file_that_is_not_utf8_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    assert complaint(path) == ": No such file or directory"
    path.write_bytes("arm,seed,score\n".encode("utf-16"))
    assert re.search("UTF-8.*byte 0", complaint(path))
    assert complaint(tmp_path).startswith(": Is a directory")


@given(st.binary(max_size=60))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_any_bytes_give_scores_or_one_line(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(b"arm,seed,score\n" + content)
    try:
        outcome = f"{len(read_scores(path))} arms"
    except TiebreakError as error:
        outcome = str(error)
    assert outcome != "1 arms"
    assert "\n" not in outcome
