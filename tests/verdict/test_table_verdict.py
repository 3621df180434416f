from __future__ import annotations

import pytest

from tiebreak.errors import TiebreakError
from tiebreak.verdict.model import Verdict
from tiebreak.verdict.scores import Scores
from tiebreak.verdict.table_verdict import TableQuestion, table_verdict


def scores_of(arms: int, seeds: int = 10, shift: float = 0.0) -> Scores:
    return {
        f"arm{arm}": {seed: 0.8 + shift + 0.01 * arm + 0.001 * ((seed * 7 + arm * 3) % 5) for seed in range(seeds)}
        for arm in range(arms)
    }


def test_a_table_gets_the_verdict_of_a_study_without_what_is_not_known() -> None:
    verdict = table_verdict({"": scores_of(2)}, TableQuestion(name="scores.csv", metric="accuracy", margin=0.001))
    assert verdict.question == "Is arm0 better than arm1 in accuracy?"
    assert verdict.primary.verdict == "b"
    assert "10 paired seeds" in verdict.answer
    assert [(item.parameters, item.seeds) for item in verdict.designs] == [(None, 10), (None, 10)]
    assert Verdict.model_validate_json(verdict.to_json()) == verdict


def test_a_baseline_asks_one_question_of_every_arm() -> None:
    pairs = [(f"arm{arm}", "arm0") for arm in range(1, 8)]
    verdict = table_verdict({"": scores_of(8)}, TableQuestion(name="t", margin=0.001, pairs=pairs))
    assert [item.verdict for item in verdict.comparisons] == ["a"] * 7
    assert "7 arms is better than arm0" in verdict.question
    assert "Of 7 comparisons, 7" in verdict.answer


def test_data_sets_are_compared_each_and_together() -> None:
    sets = {f"set{number}": scores_of(2, seeds=3, shift=0.02 * number) for number in range(7)}
    verdict = table_verdict(sets, TableQuestion(name="t", margin=0.001))
    over, *each = verdict.comparisons
    assert (over.test, over.seeds, over.primary, over.verdict) == ("wilcoxon", 7, True, "b")
    assert "7 data sets" in over.sentence
    assert [(item.verdict, item.primary) for item in each] == [("undecided", False)] * 7
    assert [item.name for item in verdict.designs][:2] == ["arm0 on set0", "arm1 on set0"]
    (warning,) = verdict.warnings
    assert "7 comparisons: 3 seeds are fewer" in warning


def test_too_few_sets_say_so() -> None:
    verdict = table_verdict({name: scores_of(2) for name in "ab"}, TableQuestion(name="t", margin=0.001))
    assert verdict.primary.verdict == "undecided"
    assert any("2 data sets" in warning for warning in verdict.warnings)


def test_an_arm_without_scores_on_a_set_is_named() -> None:
    with pytest.raises(TiebreakError, match=r"'b' has no score of arm2"):
        table_verdict({"a": scores_of(3), "b": scores_of(2)}, TableQuestion(name="t", margin=0.1))


def test_more_than_two_arms_are_ranked_where_every_pair_is_compared_by_seed() -> None:
    arms = scores_of(4)
    ranked = table_verdict({"": arms}, TableQuestion(name="t", margin=0.001)).ranking
    assert [(arm.name, arm.letters) for arm in ranked] == [("arm3", "a"), ("arm2", "b"), ("arm1", "c"), ("arm0", "d")]
    assert ranked[0].beats["arm0"] == 1.0
    one = [("arm1", "arm0"), ("arm2", "arm0"), ("arm3", "arm0")]
    assert table_verdict({"": arms}, TableQuestion(name="t", margin=0.001, pairs=one)).ranking == ()
    assert table_verdict({"": arms}, TableQuestion(name="t", margin=0.001, pairing="unpaired")).ranking == ()
    assert table_verdict({"": scores_of(2)}, TableQuestion(name="t", margin=0.001)).ranking == ()


@pytest.mark.parametrize(("seeds", "warned"), [(4, False), (10, True)])
def test_an_undecided_table_says_that_adding_runs_is_a_further_look(seeds: int, warned: bool) -> None:
    noise: Scores = {
        "a": {seed: 0.8 + 0.01 * (seed % 3) for seed in range(seeds)},
        "b": dict.fromkeys(range(seeds), 0.805),
    }
    verdict = table_verdict({"": noise}, TableQuestion(name="t", margin=0.001))
    assert verdict.primary.verdict == "undecided"
    assert any("further look" in line for line in verdict.warnings) == warned
    decided = table_verdict({"": scores_of(2)}, TableQuestion(name="t", margin=0.001))
    assert not any("further look" in line for line in decided.warnings)


def test_scores_outside_of_the_range_are_named_and_their_interval_is_not_cut() -> None:
    arms = {arm: {seed: 100 * score for seed, score in own.items()} for arm, own in scores_of(2).items()}
    verdict = table_verdict({"": arms}, TableQuestion(name="t", metric="accuracy", margin=0.001))
    (warning,) = verdict.warnings
    assert warning.startswith("arm0 and arm1: accuracy 80")
    assert "goes from 0 to 1" in warning
    assert "margin (0.001)" in warning
    assert all((arm.low or 0) > 1 for arm in verdict.designs)
    negative = {arm: {seed: -score for seed, score in own.items()} for arm, own in scores_of(2).items()}
    verdict = table_verdict({"": negative}, TableQuestion(name="t", metric="loss", margin=0.001))
    assert verdict.warnings == (), "a loss may be negative"
    assert all((arm.high or 0) < 0 for arm in verdict.designs)
