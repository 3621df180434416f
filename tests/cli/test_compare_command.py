"""`tiebreak compare`: scores of a file or folder, verdicts on the terminal and as JSON, refusals in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli_fixtures import Tiebreak, one_line


def write_scores(path: Path, *, seeds: int = 8) -> Path:
    pool = [f"pool,{seed},{0.9 + 0.001 * (seed % 3):.3f}" for seed in range(seeds)]
    strided = [f"strided,{seed},{0.8 + 0.001 * (seed % 2):.3f}" for seed in range(seeds)]
    path.write_text("\n".join(["arm,seed,score", *pool, *strided]))
    return path


def test_given_scores_get_a_verdict_without_training(tiebreak: Tiebreak, tmp_path: Path) -> None:
    done = tiebreak("compare", write_scores(tmp_path / "scores.csv"))
    assert (done.code, done.err) == (0, "")
    assert "pool vs strided: pool is better" in done.out
    assert "+0.1004" in done.out


def test_a_smaller_score_can_be_the_better_one(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = write_scores(tmp_path / "scores.csv")
    assert tiebreak("compare", path, "--goal", "min").out.count("pool vs strided: strided is better") == 1
    (row,) = json.loads(tiebreak("compare", path, "--goal", "min", "--json").out)["comparisons"]
    assert row["verdict"] == "b"
    assert row["difference"] == pytest.approx(0.1, abs=1e-3)


def test_the_margin_decides_what_is_the_same(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = write_scores(tmp_path / "scores.csv")
    assert "same within ±0.5" in one_line(tiebreak("compare", path, "--margin", "0.5").out)


@pytest.mark.parametrize("margin", ["0", "-1", "nan", "inf"])
def test_a_margin_that_is_none_is_one_line(margin: str, tiebreak: Tiebreak, tmp_path: Path) -> None:
    done = tiebreak("compare", write_scores(tmp_path / "scores.csv"), "--margin", margin)
    assert (done.code, done.out) == (2, "")
    assert "margin" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "No such file"),
        ("", "arm, seed, score"),
        ("arm;seed;score\na;1;2", "commas"),
        ("arm,seed,scor\na,1,2", "'score'"),
        ("arm,seed,score\na,1,good", "line 2: the score 'good'"),
        ("arm,seed,score\na,1,0.5", "only one arm, 'a'"),
        ("arm,seed,score\na,1,nan\nb,1,1", "line 2: the score 'nan'"),
    ],
)
def test_scores_that_cannot_be_read_are_one_line(
    content: str | None, line: str, tiebreak: Tiebreak, tmp_path: Path
) -> None:
    path = tmp_path / "scores.csv"
    if content is not None:
        path.write_text(content)
    done = tiebreak("compare", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"tiebreak: {path}")
    assert line in done.err
    assert done.err.count("\n") == 1


def test_above_fifty_arms_compare_asks_for_a_baseline(tmp_path: Path, tiebreak: Tiebreak) -> None:
    path = tmp_path / "scores.csv"
    rows = [f"arm{arm},{seed},{arm + 0.1 * seed:.3f}" for arm in range(51) for seed in range(3)]
    path.write_text("\n".join(["arm,seed,score", *rows]))
    done = tiebreak("compare", path)
    assert done.code == 2
    assert "--baseline" in one_line(done.err)
    assert len(json.loads(tiebreak("compare", path, "--baseline", "arm3", "--json").out)["comparisons"]) == 50
    assert len(json.loads(tiebreak("compare", path, "--all-pairs", "--json").out)["comparisons"]) == 1_275
    shown = tiebreak("compare", path, "--all-pairs").out
    assert shown.count(" vs ") == 1_275


def test_every_arm_and_every_seed_is_printed_and_in_the_json(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = write_scores(tmp_path / "scores.csv")
    shown = one_line(tiebreak("compare", path).out)
    assert "pool: mean 0.9009 ± 0.0008" in shown
    assert "0: 0.9, 1: 0.901, 2: 0.902" in shown
    content = json.loads(tiebreak("compare", path, "--json").out)
    assert [item["name"] for item in content["designs"]] == ["pool", "strided"]
    assert len(content["scores"]) == 16
    assert content["scores"][1] == {"arm": "pool", "seed": 1, "score": 0.901}


def test_a_wide_table_with_unequal_seeds_names_the_file_and_the_seed(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("seed,a,b\n" + "".join(f"{seed},0.{seed + 1},0.{seed + 2}\n" for seed in range(7)) + "7,0.5,\n")
    done = tiebreak("compare", path)
    assert (done.code, done.out) == (2, "")
    assert all(part in done.err for part in (str(path), "'b' has no seed 7", "--pairing"))
    assert done.err.count("\n") == 1
    assert "7 paired seeds" in one_line(tiebreak("compare", path, "--pairing", "paired").out)
    assert "8 and 7 unpaired runs" in one_line(tiebreak("compare", path, "--pairing", "unpaired").out)


def test_a_weights_and_biases_export_says_which_runs_were_left_out(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = tmp_path / "wandb.csv"
    rows = [f'"{arm}-{seed}","finished","{arm}","{seed}","{0.9 + 0.001 * seed}"' for arm in "ab" for seed in range(7)]
    path.write_text("\n".join(['"Name","State","arch","seed","acc"', *rows, '"a-7","crashed","a","7",""']))
    done = tiebreak("compare", path, "--arm", "arch", "--score", "acc")
    assert done.code == 0
    assert "1 crashed" in done.out
    assert "7 paired seeds" in one_line(done.out)


def test_a_table_without_seeds_has_runs(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["arm,score", *(f"{arm},0.9{number}" for arm in "ab" for number in (1, 5, 3))]))
    shown = one_line(tiebreak("compare", path).out)
    assert "over 3 runs" in shown
    assert "runs 0.91, 0.95, 0.93" in shown
    assert "more runs" in shown
    assert "by seed" not in shown


@pytest.mark.parametrize("out", ["scores.csv", "scores.csv/there"])
def test_a_file_in_the_place_of_the_folder_is_said_before_anything_is_shown(
    out: str, tiebreak: Tiebreak, tmp_path: Path
) -> None:
    path = write_scores(tmp_path / "scores.csv")
    done = tiebreak("compare", path, "--out", tmp_path / out)
    assert (done.code, done.out) == (2, "")
    assert "scores.csv is a file; give a folder" in done.err
    assert done.err.count("\n") == 1


def test_per_cents_as_accuracy_are_named_and_compared_as_they_are(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    rows = [f"{arm},{seed},{low + 0.1 * seed:.1f}" for arm, low in (("a", 90), ("b", 85)) for seed in range(7)]
    path.write_text("\n".join(["arm,seed,accuracy", *rows]))
    shown = one_line(tiebreak("compare", path, "--score", "accuracy").out)
    assert "95 % interval +5 to +5" in shown
    assert "note: a and b: accuracy 90, but accuracy goes from 0 to 1" in shown
