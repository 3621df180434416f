"""The claims ledger and `tiebreak claims`."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from support import REPOSITORY
from support.command_line import call_once
from tiebreak.study.parsing import builtin_names
from tiebreak.study.schema import Study
from tiebreak.theory import claims
from tiebreak.theory.claims import LEDGER, Outcome

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


@pytest.mark.parametrize("name", builtin_names())
def test_studies_and_ledger_say_the_same(name: str) -> None:
    by_id = {entry.id: entry for entry in LEDGER}
    stated = {claim.id: claim for claim in Study.load(name).claims}
    for claim in stated.values():
        assert (claim.text, claim.source) == (by_id[claim.id].text, by_id[claim.id].source)
        assert by_id[claim.id].study == name
    assert stated.keys() >= {entry.id for entry in LEDGER if entry.study == name and not entry.identity}


def test_statuses_follow_the_outcomes_and_the_studies_that_there_are() -> None:
    failing = {**HOLDING, "heads-equal": Outcome("heads-equal", "fails", "no", {})}
    found = {each.entry.id: each for each in claims.statuses(failing, ["pooling", "heads"])}
    assert list(found) == IDS
    assert (found["best-lr-sgd"].verdict, found["best-lr-sgd"].command) == ("not run", "tiebreak run pooling")
    assert (found["best-lr-adam"].verdict, found["best-lr-adam"].command) == ("not built", None)
    assert (found["heads-equal"].verdict, found["heads-equal"].command) == ("fails", "tiebreak run heads")
    assert (found["conv-is-linear"].verdict, found["conv-is-linear"].command) == ("holds", None)


def test_an_identity_without_an_outcome_is_an_error_not_a_verdict() -> None:
    with pytest.raises(KeyError):
        claims.statuses({}, [])


def run(*options: str) -> str:
    done = call_once("claims", *options, columns=80)
    assert (done.code, done.err) == (0, "")
    return done.out


@pytest.fixture(scope="module")
def printed() -> str:
    return run()


def test_the_table_shows_every_claim_at_80_columns(printed: str) -> None:
    assert max(map(len, printed.splitlines())) <= 80
    assert "…" not in printed
    for entry in LEDGER:
        assert re.search(rf"^{entry.id} .*\nreports? {entry.source[0]}\b", printed, re.M), entry.id


def test_reports_are_named_as_reports_and_explained_first(printed: str) -> None:
    first, *others = printed.splitlines()
    assert "R0 to R4" in first
    assert "student reports" in first
    for line in others:
        if re.search(r"\bR[0-4]\b", line):
            assert re.match(r"reports? R[0-4]( to R4|, R\d and R\d| and R\d)? ", line), line


def test_the_counts_below_the_table_are_those_of_the_identities(printed: str) -> None:
    last = " ".join(printed.split())
    for part in ("25 claims", "9 by identities", "7 hold", "2 fail"):
        assert part in last


def test_the_table_says_what_would_decide_a_claim(printed: str) -> None:
    assert re.search(r"^best-lr-sgd .*run `tiebreak run", printed, re.M)
    assert re.search(r"^conv-is-linear .* holds *$", printed, re.M)
    assert re.search(r"^gcn-rows-normalised .* fails *$", printed, re.M)
    for entry in LEDGER:
        if not (entry.identity or entry.benchmark) and entry.study not in builtin_names():
            assert re.search(rf"^{entry.id} .* not built", printed, re.M), entry.id


def test_below_it_stands_why_claims_fail_and_what_is_left_open(printed: str) -> None:
    said = " ".join(printed.split())
    assert re.search(r"cosine-semantic fails: .*the dog bites the man.* 1\.00", said)
    assert re.search(r"gcn-rows-normalised fails: .*0\.908, 1\.150, 0\.908", said)
    assert "heads-equal leaves open" in said


def test_json() -> None:
    rows: list[dict[str, Any]] = json.loads(run("--json"))
    assert [row["id"] for row in rows] == IDS
    by_id = {row["id"]: row for row in rows}
    assert by_id["cosine-semantic"]["verdict"] == "fails"
    assert by_id["cosine-semantic"]["evidence"]["same_letters_other_meaning"] == 1.0
    assert by_id["best-lr-sgd"] == {
        "id": "best-lr-sgd",
        "text": "of 0.1, 0.01, 0.001, SGD trains the pooling CNN best at 0.01",
        "source": ["R0", "R1", "R2"],
        "identity": False,
        "study": "pooling",
        "benchmark": None,
        "verdict": "not run",
        "command": "tiebreak run pooling",
    }
