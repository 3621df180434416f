from __future__ import annotations

from typing import Any

import pytest
import scipy.stats

from tiebreak.errors import TiebreakError
from tiebreak.verdict.scores import Seed, choose_pairs, compare_each_set, compare_scores
from tiebreak.verdict.statistics import Sample, compare

TABLE: dict[str, dict[Seed, float]] = {
    "pool": {0: 0.944, 1: 0.951, 2: 0.938, 3: 0.947, 4: 0.940, 5: 0.949, 6: 0.943},
    "stride": {0: 0.921, 1: 0.924, 2: 0.915, 3: 0.930, 4: 0.911, 5: 0.926, 6: 0.917},
    "plain": {0: 0.943, 1: 0.949, 2: 0.941, 3: 0.944, 4: 0.938, 5: 0.951, 6: 0.942},
}


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


UNEQUAL = {"pool": TABLE["pool"], "stride": {**TABLE["stride"], 7: 0.9, 8: 0.9}}


def test_unequal_seeds_are_refused_unless_asked_for() -> None:
    with pytest.raises(TiebreakError, match=r"'pool' has no seed 7, 8.*--pairing"):
        compare_scores(UNEQUAL, margin=0.005)
    ((_, _, paired),) = compare_scores(UNEQUAL, margin=0.005, pairing="paired")
    assert (paired.seeds, paired.test) == (7, "paired-t")
    assert "2 runs of stride" in paired.flags[0]
    ((_, _, unpaired),) = compare_scores(UNEQUAL, margin=0.005, pairing="unpaired")
    assert (unpaired.runs, unpaired.test, unpaired.p_sign_flip) == ((7, 9), "welch", None)


def test_arms_that_share_no_seed_are_compared_by_welch() -> None:
    other: dict[Seed, float] = {int(seed) + 100: score for seed, score in TABLE["stride"].items()}
    ((_, _, result),) = compare_scores({"pool": TABLE["pool"], "stride": other}, margin=0.005)
    expected = scipy.stats.ttest_ind(list(TABLE["pool"].values()), list(other.values()), equal_var=False)
    assert (result.test, result.verdict, result.runs) == ("welch", "a", (7, 7))
    assert result.p == pytest.approx(float(expected.pvalue))


def test_holm_counts_only_the_pairs_asked_for() -> None:
    """8 arms and 10 seeds: 28 pairs ask for 11 seeds, the 7 with a baseline for 9."""
    scores: dict[str, dict[Seed, float]] = {
        f"arm{arm}": {seed: 0.9 + 0.01 * arm + 0.001 * ((seed * 7 + arm * 3) % 5) for seed in range(10)}
        for arm in range(8)
    }
    assert {result.verdict for _, _, result in compare_scores(scores, margin=0.001)} == {"undecided"}
    found = compare_scores(scores, margin=0.001, pairs=choose_pairs(scores, baseline="arm0"))
    assert [result.verdict for _, _, result in found] == ["a"] * 7


@pytest.mark.parametrize(
    ("pairs", "margin", "message"),
    [
        (None, 0.0, "margin.*not 0.0"),
        ([("pool", "strid")], 0.1, "no arm 'strid'.*did you mean 'stride'"),
        ([("pool", "pool")], 0.1, "'pool' and 'pool'.*itself"),
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
    with pytest.raises(TiebreakError, match=r"51 arms make 1,275 pairs.*--baseline .*--all-pairs"):
        choose_pairs(scores)
    assert len(choose_pairs(scores, all_pairs=True)) == 1_275
    assert len(choose_pairs(of_arms(50))) == 1_225
    assert choose_pairs(of_arms(3), baseline="arm1") == [("arm0", "arm1"), ("arm2", "arm1")]


def test_pairs_are_named() -> None:
    assert choose_pairs("abcd", pairs="a:b, c:d") == [("a", "b"), ("c", "d")]
    assert choose_pairs(["x:1", "x:2"], pairs="x:1:x:2") == [("x:1", "x:2")]
    assert choose_pairs(["a, 1", "b", "c"], pairs="a, 1:b,b:c") == [("a, 1", "b"), ("b", "c")]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"baseline": "arm7"}, "--baseline arm7.*'arm7'"),
        ({"baseline": "arm1", "all_pairs": True}, "--baseline and --all-pairs.*one of them"),
        ({"pairs": "arm0"}, "--pairs arm0.*a:b"),
        ({"pairs": "arm0:arm9"}, "--pairs arm0:arm9.*'arm9'"),
        ({"pairs": "arm0:arm0"}, "itself"),
        ({"pairs": "arm0:arm1,arm1:arm0"}, "twice"),
        ({"pairs": ""}, "a:b"),
    ],
)
def test_pairs_that_cannot_be_are_one_line(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(TiebreakError, match=words):
        choose_pairs(of_arms(3), **asked)


def test_several_data_sets_count_for_holm_together_and_a_missing_arm_is_named() -> None:
    sets = dict.fromkeys(("mnist", "cifar"), TABLE)
    found = compare_each_set(sets, goal="max", margin=0.005, pairs=[("pool", "stride")])
    assert [(name, result.verdict) for name, _, _, result in found] == [("mnist", "a"), ("cifar", "a")]
    assert found[0][3].p_adjusted == pytest.approx(2 * (found[0][3].p or 0))
    with pytest.raises(TiebreakError, match=r"'cifar'.*plain"):
        compare_each_set({**sets, "cifar": {"pool": TABLE["pool"], "stride": TABLE["stride"]}}, goal="max", margin=0.1)
