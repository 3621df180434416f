from __future__ import annotations

from tiebreak.report import claim_text
from tiebreak.theory.claims import ClaimStatus, Entry, Outcome
from tiebreak.verdict.docket import DocketEntry, Figure, read_docket

ENTRY = Entry("x", "it is", ("R0",), study="pooling")
RESULT = read_docket()[0]


def test_outcomes_say_whether_they_are_hints() -> None:
    known = {
        (True, "holds"): "hint: holds",
        (True, "undecided"): "undecided (a hint)",
        (False, "fails"): "fails",
    }
    for (hint, outcome), words in known.items():
        entry = RESULT.model_copy(update={"hint": hint, "outcome": outcome})
        verdict = "hint" if hint and outcome != "undecided" else outcome
        assert claim_text.outcome(ClaimStatus(ENTRY, verdict, None, (entry,))) == words  # type: ignore[arg-type]
    assert claim_text.outcome(ClaimStatus(ENTRY, "undecided")) == "undecided"
    part = Outcome("x", "holds", "yes", {"left_open": "the time"})
    assert claim_text.outcome(ClaimStatus(ENTRY, "holds", part)) == "holds, part open"


def test_hints_that_point_both_ways_are_mixed() -> None:
    holds = RESULT.model_copy(update={"hint": True, "outcome": "holds", "quality": False})
    fails = holds.model_copy(update={"outcome": "fails"})
    unclear, measured = (
        holds.model_copy(update={"outcome": "undecided"}),
        fails.model_copy(update={"quality": True}),
    )

    def said(*entries: DocketEntry) -> str:
        return claim_text.outcome(ClaimStatus(ENTRY, "hint", None, entries))

    assert said(holds, unclear, fails) == "hint: holds (mixed)"
    assert said(holds, unclear, measured) == "hint: holds"
    assert said(unclear, holds, fails) == "undecided (a hint)"


def test_a_time_that_is_a_part_of_a_claim_says_what_it_decides() -> None:
    time = RESULT.model_copy(
        update={
            "hint": True, "outcome": "fails", "quality": False, "unit": "rounds", "epochs": None,
            "figures": (RESULT.figures[0].model_copy(update={"what": "time"}),),
        }
    )  # fmt: skip
    assert claim_text.leans(time, RESULT).startswith("hint: fails, time ")
    assert (claim_text.training(time), claim_text.training(RESULT.model_copy(update={"epochs": 1}))) == ("", "1 epoch")


def test_one_seed_is_singular() -> None:
    assert "n = 1 paired seed," in claim_text.basis(RESULT.model_copy(update={"n": 1, "unit": "paired seeds"}))
    assert "n = 2 paired seeds," in claim_text.basis(RESULT.model_copy(update={"n": 2, "unit": "paired seeds"}))


def test_a_result_that_only_measures_neither_holds_nor_fails() -> None:
    measured = RESULT.model_copy(update={"quality": True, "hint": True})
    assert claim_text.leans(measured) == f"hint: {claim_text.figure(RESULT.figures[0])}"
    scores = RESULT.model_copy(update={"hint": False, "outcome": "fails", "unit": "paired seeds"})
    assert claim_text.leans(scores) == claim_text.leans(scores, scores) == "fails"
    other = scores.model_copy(update={"figures": (RESULT.figures[0].model_copy(update={"what": "another"}),)})
    assert claim_text.leans(other, scores).startswith("fails, another ")
    agrees = RESULT.figures[0].model_copy(update={"what": "agrees", "verdict": "a", "expect": "a"})
    against = agrees.model_copy(update={"what": "against", "verdict": "b"})
    fails = scores.model_copy(update={"figures": (agrees, against)})
    assert claim_text.leans(fails, scores).startswith("fails, against "), "not a figure that supports the claim"
    assert "quality" in claim_text.meaning(measured.model_copy(update={"unit": "paired seeds"}))
    assert "speed" in claim_text.meaning(measured.model_copy(update={"unit": "rounds, timed alone and in turns"}))


def test_a_ratio_has_no_sign_and_hyphens_of_names_stay() -> None:
    ratio = Figure(what="a-b", value=1.06, low=1.05, high=1.07, margin=None, none=1.0, verdict="a", expect="a")
    assert claim_text.figure(ratio) == "a-b 1.060 (1.050 to 1.070)"
    assert "missing" in claim_text.figure(ratio.model_copy(update={"value": None}))


def test_what_would_decide_is_said_only_of_open_claims() -> None:
    open_claim = ClaimStatus(ENTRY, "undecided", command="tiebreak run pooling", terms="octmnist")
    assert "octmnist" in claim_text.to_decide(open_claim)
    assert claim_text.to_decide(ClaimStatus(ENTRY, "holds", command="tiebreak run pooling")) == ""
