"""The docket: the packaged one is what the kept verdicts say, and damage is one line."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import REPOSITORY
from tiebreak.errors import TiebreakError
from tiebreak.study.parsing import builtin_names, to_toml
from tiebreak.study.schema import Study
from tiebreak.theory.claims import LEDGER
from tiebreak.verdict import docket
from tiebreak.verdict.docket import DocketEntry, Origin
from tiebreak.verdict.sequential import Looks
from tiebreak.verdict.statistics import Sample, compare

RESULTS = REPOSITORY / "benchmarks" / "results"
POOLING = Origin(
    file="pooling-quick.json", study="pooling", date="2026-11-16", device="cpu", command="tiebreak run", epochs=3
)


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    sys.modules.pop("docket", None)
    import docket as script

    return script


def entries(**changes: Any) -> dict[str, DocketEntry]:
    origin = POOLING.model_copy(update=changes)
    found = docket.entries_of(docket.read_kept(RESULTS / "pooling-quick.json"), origin, "0" * 64)
    return {each.claim: each for each in found}


def test_the_packaged_docket_is_what_the_kept_verdicts_say(maker: Any) -> None:
    assert docket.DOCKET_FILE.read_text("utf-8") == maker.make().to_json()


def test_every_entry_names_a_claim_and_a_kept_file_with_its_digest() -> None:
    ids = {entry.id for entry in LEDGER}
    for entry in docket.read_docket():
        assert entry.claim in ids
        assert hashlib.sha256((RESULTS / entry.file).read_bytes()).hexdigest() == entry.sha256
        assert entry.device
        assert entry.command


def test_runs_on_other_data_or_with_another_budget_are_hints_that_say_so() -> None:
    found = entries()
    assert set(found) == {"pool-beats-stride", "best-lr-sgd", "pool-invariance"}  # no arm `pool-longer`
    pool = found["pool-beats-stride"]
    assert (pool.outcome, pool.hint, pool.n) == ("holds", True, 10)
    for part in ("mnist5k", "octmnist", "audited", "3 epochs"):
        assert part in pool.limits
    assert found["best-lr-sgd"].outcome == "fails"
    assert pool.figures[0].value == pytest.approx(0.0182)


def test_a_limit_of_the_origin_makes_a_hint() -> None:
    assert "by hand" in entries(limits={"pool-beats-stride": "by hand"})["pool-beats-stride"].limits


def test_published_figures_have_their_percentile() -> None:
    found = {(each.what, each.value): each for entry in docket.read_docket() for each in entry.reported}
    assert found["attention: test error", 0.3629].percentile == pytest.approx(6.4, abs=0.1)
    assert found["attention: test error", 0.3629].n == 10


@pytest.mark.parametrize(
    ("verdicts", "expect", "found"),
    [(["a", "a"], "a", "holds"), (["a", "undecided"], "a", "undecided"), (["a", "b"], "a", "fails"),
     (["same"], "same", "holds"), (["undecided"], "same", "undecided")],
)  # fmt: skip
def test_all_comparisons_must_go_the_claims_way(verdicts: list[str], expect: str, found: str) -> None:
    assert docket.outcome(verdicts, expect) == found


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [("n", "many", r"entries.*n"), ("figures", [{"value": float("nan")}], "finite"),
     ("figures", [{"low": float("-inf")}], "finite")],
)  # fmt: skip
def test_a_damaged_docket_is_one_line(key: str, value: Any, word: str, tmp_path: Path) -> None:
    content = json.loads(docket.DOCKET_FILE.read_text("utf-8"))
    entry = content["entries"][2]
    entry[key] = [{**entry[key][0], **value[0]}] if isinstance(value, list) else value
    path = tmp_path / "docket.json"
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(TiebreakError, match=rf"docket\.json.*{word}") as raised:
        docket.read_docket(path)
    assert "\n" not in str(raised.value)


def test_a_kept_verdict_with_nan_is_one_line() -> None:
    content = docket.read_kept(RESULTS / "pooling-quick.json")
    content["comparisons"][0]["difference"] = float("nan")
    with pytest.raises(TiebreakError, match=r"pooling-quick\.json: damaged.*finite") as raised:
        docket.entries_of(content, POOLING, "0" * 64)
    assert "\n" not in str(raised.value)


def test_the_claims_own_data_come_before_a_stand_in_with_more_seeds() -> None:
    own = entries()["pool-beats-stride"].model_copy(update={"limits": "3 epochs, not 15"})
    other = own.model_copy(update={"n": 99, "limits": "mnist5k stands in for octmnist"})
    quick = other.model_copy(update={"n": 100, "limits": f"{other.limits}; 3 epochs, not 15"})
    undecided = own.model_copy(update={"outcome": "undecided"})
    assert own.rank == undecided.rank, "the outcome is nothing to choose by"
    assert own.rank < other.rank < quick.rank


@pytest.mark.parametrize("line", ['limits = { pool-beats-strid = "x" }', 'quality = "pool-beats-strid"'])
def test_a_claim_that_there_is_not_is_refused(line: str, maker: Any, tmp_path: Path) -> None:
    (tmp_path / "pooling-quick.json").write_bytes((RESULTS / "pooling-quick.json").read_bytes())
    content = POOLING.model_dump(exclude={"limits", "quality"})
    origin = "\n".join(f"{key} = {json.dumps(value)}" for key, value in content.items())
    (tmp_path / "kept.toml").write_text(f"[[kept]]\n{origin}\n{line}\n", "utf-8")
    with pytest.raises(TiebreakError, match=r"kept\.toml: no claim 'pool-beats-strid'.*pool-beats-stride"):
        maker.make(tmp_path)


@pytest.mark.parametrize("damage", ["", "[1]", '{"study": "pooling"}', "{"])
def test_a_damaged_verdict_is_one_line(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    path.write_text(damage, "utf-8")
    with pytest.raises(TiebreakError, match=r"verdict\.json: damaged") as raised:
        docket.read_kept(path)
    assert "\n" not in str(raised.value)


def test_a_verdict_with_a_missing_key_is_one_line() -> None:
    content = docket.read_kept(RESULTS / "pooling-quick.json")
    del content["comparisons"][0]["seeds"]
    with pytest.raises(TiebreakError, match=r"pooling-quick\.json: damaged.*seeds"):
        docket.entries_of(content, POOLING, "0" * 64)


def test_what_is_a_hint_in_the_docket_is_one_in_a_user_s_own_run_of_the_same_terms() -> None:
    claims = {claim.id: claim for name in builtin_names() for claim in Study.load(name).claims}
    hints = [entry for entry in docket.read_docket() if entry.hint and entry.claim in claims]
    assert hints
    for entry in hints:
        claim = claims[entry.claim]
        other_terms = (claim.data, claim.protocol, claim.epochs) != (entry.data, entry.protocol, entry.epochs)
        found = other_terms or "not compared" in entry.limits or entry.timed
        assert found, f"{entry.claim} would be decided: {entry.limits}"


def test_a_result_without_a_comparison_that_the_claim_needs_is_a_hint_and_names_it() -> None:
    verdict = docket.read_kept(RESULTS / "language-model-r4-budget.json")
    origin = POOLING.model_copy(update={"study": "language-model", "epochs": 200})
    (found,) = docket.entries_of(verdict, origin, "0" * 64)
    assert (found.claim, found.hint, found.outcome) == ("bigger-lm-better", True, "holds")
    assert found.limits == "largest \N{MINUS SIGN} as-reported not compared"


def test_comparisons_of_one_pair_that_are_missing_are_told_apart_by_their_metric() -> None:
    verdict = docket.read_kept(RESULTS / "speech-decoder-an4.json")
    verdict["comparisons"] = [item for item in verdict["comparisons"] if item["metric"] == "dl"]
    found = docket.entries_of(verdict, POOLING.model_copy(update={"study": "speech-decoder"}), "0" * 64)
    wins = next(each for each in found if each.claim == "attention-decoder-wins")
    assert wins.hint
    for metric in ("loss", "jaccard", "cosine"):
        assert f"{metric}: attention \N{MINUS SIGN} lstm" in wins.limits


def test_a_pair_is_known_by_its_arms_not_by_its_name() -> None:
    verdict = docket.read_kept(RESULTS / "language-model-largest.json")
    verdict["comparisons"][0]["group"] = "bigger"  # in the built-in study the name of another pair
    origin = POOLING.model_copy(update={"study": "language-model", "epochs": 40})
    (found,) = docket.entries_of(verdict, origin, "0" * 64)
    assert "as-reported \N{MINUS SIGN} smaller not compared" in found.limits


def test_a_changed_study_of_the_same_name_is_a_hint_and_says_what_was_changed(tmp_path: Path) -> None:
    verdict = docket.read_kept(RESULTS / "pooling-quick.json") | {"data": "octmnist", "protocol": "as-reported"}
    origin, built_in = POOLING.model_copy(update={"epochs": 15}), Study.load("pooling")

    def entry(change: dict[str, Any]) -> DocketEntry:
        path = tmp_path / "study.toml"
        path.write_text(to_toml(built_in.model_copy(update=change)), "utf-8")  # as a results folder holds it
        found = docket.entries_of(verdict, origin, "0" * 64, Study.load(str(path)))
        return next(each for each in found if each.claim == "pool-beats-stride")

    assert not entry({}).hint
    assert not entry({"seeds": 99, "question": "mine"}).hint
    arms = (built_in.arms[0].model_copy(update={"design": "mlp"}), *built_in.arms[1:])
    for change, word in (
        ({"arms": arms}, "arms"),
        ({"margin": 0.5}, "margin"),
        ({"grid": {"lr": (0.1, 0.01, 0.001, 0.5)}}, "grid"),
    ):
        assert f"another {word}" in entry(change).limits
    own = tuple(claim.model_copy(update={"data": "mnist5k", "epochs": 3}) for claim in built_in.claims)
    quick = docket.entries_of(
        docket.read_kept(RESULTS / "pooling-quick.json"), POOLING, "0" * 64, built_in.model_copy(update={"claims": own})
    )
    assert all("mnist5k stands in for octmnist" in each.limits for each in quick)


def test_an_earlier_look_that_a_verdict_does_not_count_is_counted_in_the_docket(maker: Any) -> None:
    """From differences and p-values; the same as with the scores of the runs."""
    draws = np.random.default_rng(3)
    halves = [draws.normal(0, 0.02, 10) for _ in range(3)]  # mirrored: not lopsided
    samples = [
        Sample(a=shift + np.concatenate((half, -half)), b=np.zeros(20))
        for shift, half in zip((0.02, 0.03, 0.002), halves, strict=True)
    ]
    once, looks = compare(samples, margin=0.005), Looks((8, 20), 8)
    items = [
        {"metric": "accuracy", "seeds": 20, "difference": item.difference, "p": item.p, "margin": 0.005,
         "verdict": item.verdict, "low": item.low, "high": item.high, "p_adjusted": item.p_adjusted}
        for item in once
    ]  # fmt: skip
    verdict = {"metric": {"name": "accuracy", "goal": "max"}, "seeds": 20, "margin": 0.005, "comparisons": items}
    assert maker.with_looks(verdict, ()) is verdict
    found = maker.with_looks(verdict, (8,))["comparisons"]
    for item, right in zip(found, compare(samples, margin=0.005, looks=looks), strict=True):
        assert (item["verdict"], item["low"]) == (right.verdict, pytest.approx(right.low, abs=1e-6))
        assert item["p_adjusted"] == pytest.approx(right.p_adjusted, rel=1e-6)
    assert [item["verdict"] for item in found] != [item.verdict for item in once]
    items[0]["metric"] = "loss"
    with pytest.raises(TiebreakError, match="one metric"):
        maker.with_looks(verdict, (8,))


def test_warnings_and_notes_of_a_verdict_reach_the_docket() -> None:
    verdict = docket.read_kept(RESULTS / "pooling-pneumoniamnist.json")
    origin = POOLING.model_copy(update={"epochs": 15, "notes": {"pool-beats-stride": "mind this"}})
    found = {each.claim: each for each in docket.entries_of(verdict, origin, "0" * 64)}
    assert "the file of pneumoniamnist is not the published one" in found["more-epochs-help"].limits
    assert found["pool-beats-stride"].note == f"mind this; {docket.ON_THIS_TEST_SET}"
    assert found["pool-invariance"].note == ""
