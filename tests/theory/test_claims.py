"""The claims ledger and `tiebreak claims`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from support import REPOSITORY
from support.command_line import call_once
from tiebreak.errors import TiebreakError
from tiebreak.study.parsing import builtin_names
from tiebreak.study.schema import Study
from tiebreak.theory import claims
from tiebreak.theory.claims import LEDGER, Outcome
from tiebreak.verdict.docket import DocketEntry, read_docket

IDS = [
    "best-lr-sgd",
    "pool-beats-stride",
    "pool-invariance",
    "more-epochs-help",
    "best-lr-adam",
    "cnn-fewer-parameters",
    "cnn-beats-mlp",
    "cnn-needs-structure",
    "conv-is-linear",
    "attention-decoder-wins",
    "attention-decoder-faster",
    "metrics-agree",
    "metric-order",
    "cosine-semantic",
    "attention-translates",
    "beam-beats-greedy",
    "softmax-quadratic",
    "taylor-linear",
    "feature-size",
    "heads-equal",
    "perplexity-is-exp-ce",
    "bigger-lm-better",
    "num-steps-neutral",
    "lm-held-out",
    "gcn-rows-normalised",
]
HOLDING = {entry.id: Outcome(entry.id, "holds", "it does", {"x": 1.0}) for entry in LEDGER if entry.identity}


def test_the_ledger_is_complete_and_each_claim_is_there_once() -> None:
    assert [entry.id for entry in LEDGER] == IDS
    assert len(set(IDS)) == 25


@pytest.mark.parametrize("entry", LEDGER, ids=lambda entry: entry.id)
def test_every_claim_has_a_sentence_a_source_and_a_way_to_decide_it(entry: claims.Entry) -> None:
    assert entry.text
    assert entry.source
    assert set(entry.source) <= {"R0", "R1", "R2", "R3", "R4"}
    assert entry.identity or entry.study or entry.benchmark
    assert entry.benchmark is None or (REPOSITORY / entry.benchmark).is_file()
    for part in (entry.command or "").split():
        assert not part.startswith("benchmarks/") or (REPOSITORY / part).is_file()


@pytest.mark.parametrize("name", builtin_names())
def test_studies_and_ledger_say_the_same(name: str) -> None:
    by_id = {entry.id: entry for entry in LEDGER}
    stated = {claim.id: claim for claim in Study.load(name).claims}
    for claim in stated.values():
        assert (claim.text, claim.source) == (by_id[claim.id].text, by_id[claim.id].source)
        assert by_id[claim.id].study == name
    assert stated.keys() >= {entry.id for entry in LEDGER if entry.study == name and not entry.identity}


TERMS = {"pooling": "octmnist, as-reported, 15 epochs", "heads": "mnist, audited, 10 epochs"}


def entry(**changes: Any) -> DocketEntry:
    whole = next(each for each in read_docket() if each.claim == "pool-beats-stride")
    return whole.model_copy(update=changes)


def test_statuses_follow_the_outcomes_and_the_results() -> None:
    failing = {**HOLDING, "heads-equal": Outcome("heads-equal", "fails", "no", {})}
    found = {each.entry.id: each for each in claims.statuses(failing, TERMS, [entry(hint=False, outcome="fails")])}
    assert list(found) == IDS
    assert (found["pool-beats-stride"].verdict, found["pool-beats-stride"].command) == ("fails", "tiebreak run pooling")
    assert (found["more-epochs-help"].verdict, found["more-epochs-help"].best) == ("undecided", None)
    assert "octmnist" in found["more-epochs-help"].terms
    assert (found["heads-equal"].verdict, found["heads-equal"].command) == ("fails", "tiebreak run heads")
    assert (found["conv-is-linear"].verdict, found["conv-is-linear"].command) == ("holds", None)


def test_an_identity_without_an_outcome_is_an_error_not_a_verdict() -> None:
    with pytest.raises(KeyError):
        claims.statuses({}, {})


@pytest.mark.parametrize(
    ("kept", "own", "best"),
    [
        ({"hint": True}, {"hint": True}, "own"),
        ({"hint": False}, {"hint": True}, "kept"),
        ({"hint": False, "outcome": "undecided"}, {"hint": True}, "kept"),
        ({"hint": True, "n": 99}, {"hint": True, "n": 9}, "own"),
        ({"hint": True, "limits": "other"}, {"hint": True, "limits": "other; and more"}, "kept"),
        ({"hint": False}, {"hint": False, "outcome": "undecided"}, "own"),
    ],
)
def test_a_result_of_the_user_comes_before_those_that_are_as_close_to_the_claim(
    kept: dict[str, Any], own: dict[str, Any], best: str
) -> None:
    both = [entry(file="kept", **kept)], [entry(file="own", **own)]
    (found,) = [each for each in claims.statuses(HOLDING, TERMS, *both) if each.entry.id == "pool-beats-stride"]
    assert [each.file for each in found.entries] == ([best, "kept"] if best == "own" else ["kept", "own"])


def test_the_newest_result_of_the_user_comes_first_and_a_hint_after_a_decision() -> None:
    own = [entry(file="old", hint=False), entry(file="new", hint=False), entry(file="hint", hint=True)]
    (found,) = [each for each in claims.statuses(HOLDING, TERMS, [], own) if each.entry.id == "pool-beats-stride"]
    assert [each.file for each in found.entries] == ["new", "old", "hint"]


def run(*options: str) -> str:
    done = call_once("claims", *options, columns=80)
    assert (done.code, done.err) == (0, "")
    return done.out


@pytest.fixture(scope="module")
def printed() -> str:
    return run()


def test_every_claim_has_an_outcome_at_80_columns_and_none_is_not_run(printed: str) -> None:
    assert max(map(len, printed.splitlines())) <= 80
    assert "…" not in printed
    assert "not run" not in printed
    for each in LEDGER:
        hint = r"hint: (holds|fails)( \(mixed\))?|undecided \(a hint\)"
        line = rf"^{each.id} +((holds|fails|undecided)(, part open)?|{hint}) +reports? R"
        assert re.search(line, printed, re.M), each.id


def test_commands_are_unbroken(printed: str) -> None:
    lines = {line.strip() for line in printed.splitlines()}
    assert "tiebreak run translation-attention" not in lines  # decided
    assert "tiebreak run speech-decoder" in lines


def test_reports_are_named_as_reports_and_explained_first(printed: str) -> None:
    first, *others = printed.splitlines()
    assert "R0 to R4" in first
    assert "student reports" in first
    for line in others:
        if re.search(r"\bR[0-4]\b", line):
            assert re.search(r"reports? R[0-4]( to R4|, R\d and R\d| and R\d)?$", line), line


def test_the_counts_below_the_table_are_those_of_the_identities(printed: str) -> None:
    last = " ".join(printed.split())
    for part in ("25 claims", "9 by identities", "7 hold", "2 fail"):
        assert part in last


def test_why_a_claim_holds_or_fails_stands_with_it(printed: str) -> None:
    said = " ".join(printed.split())
    assert re.search(r"cosine-semantic fails .*the dog bites the man.* 1\.00", said)
    assert re.search(r"gcn-rows-normalised fails .*0\.908, 1\.150, 0\.908", said)
    assert re.search(r"attention-translates holds .*error: attention − plain −0\.135.*n = 10 paired seeds", said)
    assert "left open: whether more heads are slower" in said


def test_json() -> None:
    rows: list[dict[str, Any]] = json.loads(run("--json"))
    assert [row["id"] for row in rows] == IDS
    by_id = {row["id"]: row for row in rows}
    assert by_id["cosine-semantic"]["verdict"] == "fails"
    assert by_id["cosine-semantic"]["evidence"]["same_letters_other_meaning"] == 1.0
    wins = by_id["attention-translates"]
    assert (wins["verdict"], wins["n"], wins["data"]) == ("holds", 10, "tatoeba-spa-eng")
    assert wins["results"][0]["figures"][0]["value"] == pytest.approx(-0.1346, abs=1e-4)
    assert {row["verdict"] for row in rows} <= {"holds", "fails", "undecided", "hint"}


def test_a_docket_with_an_unknown_claim_is_refused() -> None:
    entry = read_docket()[0].model_copy(update={"claim": "pool-beats-strid"})
    with pytest.raises(TiebreakError, match=r"docket\.json: no claim 'pool-beats-strid'.*pool-beats-stride") as raised:
        claims.statuses(HOLDING, {}, [entry])
    assert "\n" not in str(raised.value)
