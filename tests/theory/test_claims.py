"""The claims ledger and `tiebreak claims`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from typing import Any

import pytest

from support import REPOSITORY
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


def test_standings_follow_the_outcomes_and_the_studies_that_there_are() -> None:
    failing = {**HOLDING, "heads-equal": Outcome("heads-equal", "fails", "no", {})}
    found = {each.entry.id: each for each in claims.standings(failing, ["pooling", "heads"])}
    assert list(found) == IDS
    assert (found["best-lr-sgd"].verdict, found["best-lr-sgd"].command) == ("not run", "tiebreak run pooling")
    assert (found["best-lr-adam"].verdict, found["best-lr-adam"].command) == ("not built", None)
    assert (found["heads-equal"].verdict, found["heads-equal"].command) == ("fails", "tiebreak run heads")
    assert (found["conv-is-linear"].verdict, found["conv-is-linear"].command) == ("holds", None)


def test_an_identity_without_an_outcome_is_an_error_not_a_verdict() -> None:
    with pytest.raises(KeyError):
        claims.standings({}, [])


def run(*options: str) -> str:
    command = [sys.executable, "-W", "error", "-m", "tiebreak", "claims", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"COLUMNS": "80"})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def printed() -> tuple[str, float]:
    start = time.perf_counter()
    return run(), time.perf_counter() - start


def test_the_table_shows_every_claim_at_80_columns(printed: tuple[str, float]) -> None:
    text, _ = printed
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    for entry in LEDGER:
        assert re.search(rf"^{entry.id} .*\n{' '.join(entry.source)} ", text, re.M), entry.id
    said = " ".join(text.split())
    assert "9 by identities computed now (7 hold and 2 fail)" in said


def test_the_table_says_what_would_decide_a_claim(printed: tuple[str, float]) -> None:
    text, _ = printed
    assert re.search(r"^best-lr-sgd .*run `tiebreak run", text, re.M)
    assert re.search(r"^conv-is-linear .* holds *$", text, re.M)
    assert re.search(r"^gcn-rows-normalised .* fails *$", text, re.M)
    for entry in LEDGER:
        if not (entry.identity or entry.benchmark) and entry.study not in builtin_names():
            assert re.search(rf"^{entry.id} .* study not built yet *$", text, re.M), entry.id


def test_below_it_stands_why_claims_fail_and_what_is_left_open(printed: tuple[str, float]) -> None:
    said = " ".join(printed[0].split())
    assert "cosine-semantic fails: “the dog bites the man” and “the man bites the dog” have similarity 1.00" in said
    assert "gcn-rows-normalised fails: on the path 0 - 1 - 2 the rows sum to 0.908, 1.150, 0.908" in said
    assert "heads-equal leaves open whether more heads are slower" in said


def test_it_takes_seconds(printed: tuple[str, float]) -> None:
    assert printed[1] < 30  # 10 on a machine that does nothing else


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
