from __future__ import annotations

import re
from pathlib import Path

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from tiebreak.errors import TiebreakError
from tiebreak.verdict.scores import Seed, choose_pairs, compare_scores, read_scores
from tiebreak.verdict.statistics import Sample, compare

TABLE: dict[str, dict[Seed, float]] = {
    "pool": {0: 0.944, 1: 0.951, 2: 0.938, 3: 0.947, 4: 0.940, 5: 0.949, 6: 0.943},
    "stride": {0: 0.921, 1: 0.924, 2: 0.915, 3: 0.930, 4: 0.911, 5: 0.926, 6: 0.917},
    "plain": {0: 0.943, 1: 0.949, 2: 0.941, 3: 0.944, 4: 0.938, 5: 0.951, 6: 0.942},
}


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
        ("arm,seed,scores\na,0,1\n", ", line 1", "no column 'score'.*did you mean 'scores'"),
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
    assert complaint(tmp_path) == ": Is a directory"


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


def test_all_pairs_in_order_of_appearance() -> None:
    found = compare_scores(TABLE, margin=0.005)
    assert [(a, b) for a, b, _ in found] == [("pool", "stride"), ("pool", "plain"), ("stride", "plain")]
    assert [result.verdict for _, _, result in found] == ["a", "same", "b"]
    expected = compare(
        [Sample(a=list(TABLE[a].values()), b=list(TABLE[b].values())) for a, b, _ in found], margin=0.005
    )
    assert [result for _, _, result in found] == expected


def test_chosen_pairs_and_the_goal() -> None:
    ((a, b, result),) = compare_scores(TABLE, goal="min", margin=0.005, pairs=[("stride", "pool")])
    assert (a, b, result.verdict, result.p_a_better) == ("stride", "pool", "a", 1.0)
    found = scipy.stats.ttest_rel(list(TABLE["stride"].values()), list(TABLE["pool"].values()))
    assert result.p == pytest.approx(float(found.pvalue))
    assert result.p_adjusted == result.p  # one comparison: nothing to adjust


def test_scores_are_paired_by_seed_and_not_by_place() -> None:
    backwards = {**TABLE, "stride": dict(reversed(TABLE["stride"].items()))}
    pairs = [("pool", "stride"), ("pool", "plain")]
    assert compare_scores(backwards, margin=0.005, pairs=pairs) == compare_scores(TABLE, margin=0.005, pairs=pairs)


def test_seeds_without_a_partner_are_counted() -> None:
    scores = {"pool": TABLE["pool"], "stride": {**TABLE["stride"], 7: 0.9, 8: 0.9}}
    ((_, _, result),) = compare_scores(scores, margin=0.005)
    assert result.seeds == 7
    assert len(result.flags) == 1
    assert "2 of stride" in result.flags[0]
    shorter = {"pool": {seed: score for seed, score in TABLE["pool"].items() if seed}, "stride": scores["stride"]}
    ((_, _, result),) = compare_scores(shorter, margin=0.005)
    assert "3 of stride" in result.flags[0]


@pytest.mark.parametrize(
    ("pairs", "margin", "message"),
    [
        (None, 0.0, "margin.*not 0.0"),
        ([("pool", "strid")], 0.1, "no arm 'strid'.*did you mean 'stride'"),
        ([("pool", "pool")], 0.1, "'pool' and 'pool'.*itself"),
        ([("pool", "alone")], 0.1, "'pool' and 'alone'.*no seed"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(
    pairs: list[tuple[str, str]] | None, margin: float, message: str
) -> None:
    with pytest.raises(TiebreakError, match=message):
        compare_scores({**TABLE, "alone": {99: 0.5}}, margin=margin, pairs=pairs)


def of_arms(count: int) -> dict[str, dict[Seed, float]]:
    return {f"arm{number}": {seed: number + 0.1 * seed for seed in range(3)} for number in range(count)}


def test_many_arms_are_compared_with_a_baseline_or_all_if_asked() -> None:
    scores = of_arms(51)
    with pytest.raises(TiebreakError, match=r"51 arms make 1,275 pairs.*--against .*--all-pairs"):
        choose_pairs(scores, None, all_pairs=False)
    assert len(choose_pairs(scores, None, all_pairs=True)) == 1_275
    assert len(choose_pairs(of_arms(50), None, all_pairs=False)) == 1_225
    assert choose_pairs(of_arms(3), "arm1", all_pairs=False) == [("arm0", "arm1"), ("arm2", "arm1")]


def test_a_baseline_is_one_of_the_arms() -> None:
    with pytest.raises(TiebreakError, match=r"--against arm7.*arm"):
        choose_pairs(of_arms(3), "arm7", all_pairs=False)
    with pytest.raises(TiebreakError, match="one of them"):
        choose_pairs(of_arms(3), "arm1", all_pairs=True)
