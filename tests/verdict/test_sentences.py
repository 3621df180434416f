from __future__ import annotations

import re
from typing import Any

import pytest

from support import hand_made
from tiebreak.study.schema import Claim
from tiebreak.verdict.model import ComparisonResult, Outcome, Side, Stopping
from tiebreak.verdict.sentences import answer, claim_reason, four_decimals, more_seeds, sentence, stopped

INTERACTION = ("cnn", "mlp", "cnn-shuffled", "mlp-shuffled")


def side(arm: str, metric: str = "accuracy", metrics: tuple[str, ...] = ()) -> Side:
    return Side(arm=arm, setting={"lr": 0.1}, metric=metric, metrics=metrics)


def result(verdict: Outcome = "undecided", **changes: Any) -> ComparisonResult:
    values: dict[str, Any] = {
        "name": "pool vs strided", "group": "pool vs strided", "kind": "pair", "primary": True, "a": "pool",
        "b": "strided", "sides": (side("pool"), side("strided")), "metric": "accuracy", "margin": 0.005,
        "difference": 0.02, "low": 0.01, "high": 0.03, "p": 0.01, "p_adjusted": 0.01, "p_sign_flip": 0.01,
        "p_a_better": 0.9, "seeds": 8, "seeds_needed": None, "examples_low": None, "examples_high": None,
        "sentence": "",
    }  # fmt: skip
    return ComparisonResult(**{**values, "verdict": verdict, **changes})


def interaction(verdict: Outcome) -> ComparisonResult:
    sides = tuple(side(arm) for arm in INTERACTION)
    return result(verdict, kind="interaction", a="cnn - mlp", b="cnn-shuffled - mlp-shuffled", sides=sides)


@pytest.mark.parametrize(
    ("verdict", "start"),
    [
        ("a", "pool is better"),
        ("b", "strided is better"),
        ("same", "pool and strided are the same within ±0.005"),
        ("undecided", "Undecided between pool and strided"),
    ],
)
def test_a_pair_in_words(verdict: Outcome, start: str) -> None:
    found = sentence(result(verdict))
    assert found.startswith(start)
    for part in ("accuracy +0.0200", "95 % interval +0.0100 to +0.0300", "8 paired seeds"):
        assert part in found


@pytest.mark.parametrize(
    ("verdict", "words"), [("a", "is larger"), ("b", "is smaller"), ("same", "within ±0.005"), ("undecided", "whether")]
)
def test_an_interaction_names_all_four_arms_and_no_winner(verdict: Outcome, words: str) -> None:
    found = sentence(interaction(verdict))
    assert words in found
    assert re.search("advantage of cnn over mlp .*that of cnn-shuffled over mlp-shuffled", found)
    assert "better" not in found


@pytest.mark.parametrize(("verdict", "words"), [("a", "is above"), ("b", "is below"), ("undecided", "whether")])
def test_an_order_says_which_metric_is_above(verdict: Outcome, words: str) -> None:
    sides = (side("lstm", "cosine"), side("lstm", "dl"))
    found = sentence(result(verdict, kind="order", a="cosine of lstm", b="dl of lstm", sides=sides))
    assert re.search(f"{words}.*difference [+]0.0200", found)


@pytest.mark.parametrize(
    ("verdict", "words"),
    [("a", "rise together"), ("b", "falls where"), ("same", "not correlated"), ("undecided", "whether")],
)
def test_an_agreement_names_its_metrics_and_arm(verdict: Outcome, words: str) -> None:
    sides = (side("lstm", "dl", ("dl", "jaccard", "cosine")),)
    found = sentence(result(verdict, kind="agreement", a="agreement", b="none", sides=sides))
    assert words in found
    assert "dl, jaccard and cosine of lstm" in found
    assert "rank correlation +0.0200" in found


def test_nothing_to_compare_yet() -> None:
    nothing: dict[str, Any] = {"difference": None, "low": None, "high": None, "seeds": 0, "seeds_needed": 6}
    assert sentence(result(**nothing)).startswith("pool and strided share no finished seed")
    found = sentence(interaction("undecided").model_copy(update=nothing))
    assert found.startswith("cnn − mlp and cnn-shuffled − mlp-shuffled share"), "true minus signs"


def test_a_side_that_only_failed_is_not_told_to_add_seeds() -> None:
    lost = result(difference=None, low=None, high=None, seeds=0, seeds_needed=None)
    assert "failed" in sentence(lost)
    assert "seeds" not in answer([lost], seeds=6, complete=True)


def test_a_single_seed_has_no_interval() -> None:
    found = sentence(result(difference=0.5, low=None, high=None, seeds=1))
    assert "(accuracy +0.5000, 1 paired seed)" in found


def test_an_interval_that_was_cut_at_zero_is_open_there() -> None:
    assert "interval above 0 to +0.0300 over" in sentence(result("a", low=0.0))
    assert "interval -0.0300 to below 0 over" in sentence(result("b", difference=-0.02, low=-0.03, high=0.0))
    assert "interval +0.0000 to +0.0000 over" in sentence(result("same", difference=0.0, low=0.0, high=0.0))


def test_a_finding_has_no_interval_that_is_written_as_beginning_at_zero() -> None:
    assert "interval above 0 to +0.0300 over" in sentence(result("a", low=1.1e-5))
    assert "interval -0.0300 to below 0 over" in sentence(result("b", difference=-0.02, low=-0.03, high=-1.1e-5))
    assert "interval -1.1e-05 to +0.0300 over" in sentence(result("undecided", low=-1.1e-5))


def test_a_clear_difference_of_too_few_seeds_says_why_it_is_undecided() -> None:
    assert "at least 9 could decide" in sentence(result(), least=9)
    for item, least in ((result(), 8), (result(low=-0.01), 9), (result("a"), 9)):
        assert "could decide" not in sentence(item, least=least)


def test_numbers_are_written_by_whoever_asks_and_from_the_data() -> None:
    """To round the four decimals of the verdict's sentence once more could show another digit."""
    item = result("a", difference=0.00652, low=0.00348, high=0.0127, a="pool at lr=0.0125", b="strided-0.1234")
    assert four_decimals(item.low or 0) == "+0.0035"
    assert [four_decimals(each) for each in (13.62887, -5.83018, 241.4)] == ["+13.63", "-5.830", "+241.4"]
    found = sentence(item, number=lambda value: f"{value:+.3f}")
    assert found.startswith("pool at lr=0.0125 is better than strided-0.1234 (accuracy +0.007, ")
    assert "+0.003 to +0.013" in found


def test_an_answer_is_the_primary_comparison_and_the_seeds_still_needed() -> None:
    other = result("a", name="other", primary=False, a="nobody")
    assert "nobody" not in answer((result("a"), other), seeds=8, complete=True)
    undecided = result(low=-0.01, seeds_needed=4)
    assert "--seeds 12" in answer((undecided,), seeds=8, complete=True)
    waiting = answer((undecided,), seeds=20, complete=False)
    assert "--seeds" not in waiting
    assert "20 planned seeds" in waiting
    assert "planned" not in answer((undecided,), seeds=20, complete=True)


def test_few_seeds_are_not_extrapolated() -> None:
    few = result(low=-0.3, seeds=2, seeds_needed=770)
    said = answer((few,), seeds=2, complete=True)
    assert "772" not in said
    assert "At least 6 seeds" in said
    assert "--until-decided" in said
    assert more_seeds(few, least=6) == "at least 4 more seeds"
    enough = result(low=-0.3, seeds=4, seeds_needed=770)
    assert "About 774 seeds would decide, judged by the spread of these 4" in answer((enough,), seeds=4, complete=True)
    assert more_seeds(enough, least=6) == "about 770 more seeds"


def test_advice_after_a_look_is_one_further_look() -> None:
    """With several, each spends half of the error that is left: as many seeds decide less often."""
    said = [answer((result(low=-0.3, seeds_needed=more),), seeds=64, complete=True) for more in (600, 20_000)]
    assert "(--seeds 664, counted as a further look)" in said[0]
    assert "--seeds" not in said[1]
    assert "more than a study can have (10,000)" in said[1]


def test_seeds_whose_runs_failed_count_for_the_plan_and_not_for_the_comparison() -> None:
    few = result(low=-0.3, seeds=2, seeds_needed=9)
    said = answer((few,), seeds=6, complete=True)
    assert "At least 10 seeds are needed; 2 cannot tell" in said
    assert "--seeds 10)" in said
    assert more_seeds(few, least=6) == "at least 4 more seeds"
    said = answer((result(low=-0.3, seeds=8, seeds_needed=5),), seeds=10, complete=True)
    assert "About 15 seeds would decide, judged by the spread of these 8" in said


def test_seeds_without_a_spread_are_not_extrapolated() -> None:
    same = result(difference=0.0, low=0.0, high=0.0, seeds=6, seeds_needed=1)
    said = answer((same, result("a", primary=False), result("a", primary=False)), seeds=6, complete=True)
    assert "spread" not in said
    assert "At least 7 seeds are needed; 6 cannot tell" in said
    assert more_seeds(same, least=7) == "at least 1 more seed"


def test_a_claim_rests_on_its_comparisons_and_a_hint_says_where_it_belongs() -> None:
    study = hand_made.study()
    claim = Claim(id="x", text="t", comparison="one", also=("two",), data="octmnist", protocol="as-reported", epochs=15)
    items = [result("a", name=name, group=name, a=f"arm-{name}") for name in ("one", "two", "three")]
    found = claim_reason(study, claim, items, hint=False)
    assert "arm-one" in found
    assert "arm-two" in found
    assert "arm-three" not in found
    hint = claim_reason(study, claim, items, hint=True)
    assert hint.endswith(found)
    for word in ("The claim is about", "octmnist", "as-reported", "15 epochs", study.data):
        assert word in hint


@pytest.mark.parametrize(
    ("seeds", "words"),
    [(9, "Decided after 9 seeds, of at most 12."),
     (18, "Decided by the 18 seeds that are here already; at most 12 were asked for.")],
)  # fmt: skip
def test_a_cap_below_the_seeds_that_are_there_is_no_cap_of_more(seeds: int, words: str) -> None:
    decided = Stopping(max_seeds=12, comparisons="primary", looks=(seeds,), next=None, reason="decided", chance=None)
    assert stopped(decided, seeds) == words


@pytest.mark.parametrize("verdict", ["a", "undecided"])
def test_an_answer_of_an_incomplete_study_is_not_final(verdict: Outcome) -> None:
    """Also where it is decided: a verdict after every seed would be a look that nobody counts."""
    item = result(verdict, seeds=11)
    assert answer((item,), seeds=12, complete=False).endswith("Not final: 11 of the 12 planned seeds are there.")
    assert answer((item,), seeds=11, complete=False).endswith("Not final: planned runs are missing.")
    assert "Not final" not in answer((item,), seeds=11, complete=True)
