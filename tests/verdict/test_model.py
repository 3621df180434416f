from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from support import hand_made
from support.hand_made import Book
from tiebreak.errors import TiebreakError
from tiebreak.results.record import Records
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.model import VERDICT_FILE, Verdict

KEYS = {
    "": "study question data metric designs comparisons reported claims",
    "metric": "name goal split",
    "designs": "name parameters flops setting seeds failed mean sd low high train_seconds",
    "comparisons": "a b sides difference low high p p_adjusted p_a_better verdict seeds seeds_needed",
    "reported": "source what value mean low high inside",
    "claims": "id verdict",
}


def verdict() -> Verdict:
    study = hand_made.study(
        comparisons=[
            {"name": "rates", "kind": "setting", "arm": "pool", "expect": {"lr": 0.1}},
            {"name": "designs", "a": "pool", "b": "strided", "primary": True},
        ],
        claims=[{"id": "pool-wins", "text": "pooling wins", "comparison": "designs"}],
        reported=[
            {
                "source": "R0",
                "what": "pool",
                "arm": "pool",
                "setting": {"lr": 0.1},
                "metric": "accuracy",
                "value": 0.8,
            }
        ],
    )
    book = Book(hand_made.plan(study))
    for arm, score in (("pool", 0.75), ("strided", 0.5)):
        for seed in range(2):
            book.done(arm, {"lr": 0.1}, seed, val=0.5, test=score + seed / 8, losses=[1.0, 1.0])
    return make_verdict(study, book.plan, Records(epochs=book.epochs, runs=book.runs, finals=book.finals))


def test_the_primary_comparison_answers() -> None:
    found = verdict()
    assert found.primary.name == "designs"
    assert found.primary.difference == 0.25
    assert (found.planned, found.finished) == (12, 4)


def test_a_stored_verdict_comes_back(tmp_path: Path) -> None:
    found = verdict()
    (tmp_path / VERDICT_FILE).write_text(found.to_json())
    assert Verdict.read(tmp_path) == found


def test_the_keys_that_programs_rely_on_are_there() -> None:
    content = json.loads(verdict().to_json())
    assert set(KEYS[""].split()) <= set(content)
    assert set(KEYS["metric"].split()) <= set(content["metric"])
    for part in ("designs", "comparisons", "reported", "claims"):
        assert content[part]
        assert all(set(KEYS[part].split()) <= set(item) for item in content[part])


def test_a_number_that_does_not_exist_is_null() -> None:
    found = verdict()
    arm = found.designs[0].model_copy(update={"mean": math.nan, "sd": None})
    text = found.model_copy(update={"designs": (arm,)}).to_json()
    assert "NaN" not in text
    (written,) = json.loads(text)["designs"]
    assert written["mean"] is None
    assert written["sd"] is None


@pytest.mark.parametrize("place", ["", "comparisons", "designs"])
def test_a_file_that_lacks_a_key_is_of_an_earlier_version(place: str) -> None:
    written = json.loads(verdict().to_json())
    assert not Verdict.model_validate(written).is_of_earlier_version()
    table = written[place][0] if place else written
    del table[{"": "cost", "comparisons": "flags", "designs": "at_edge"}[place]]
    assert Verdict.model_validate(written).is_of_earlier_version()


def test_a_folder_without_a_verdict_is_told(tmp_path: Path) -> None:
    with pytest.raises(TiebreakError, match=r"verdict\.json.*`tiebreak run`"):
        Verdict.read(tmp_path)


@pytest.mark.parametrize("text", ["", "{}", '{"study": 1}', "not json\n"])
def test_a_damaged_verdict_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / VERDICT_FILE).write_text(text)
    with pytest.raises(TiebreakError) as caught:
        Verdict.read(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / VERDICT_FILE}: ")
    assert "\n" not in str(caught.value)


def test_an_outcome_outside_the_four_is_refused(tmp_path: Path) -> None:
    found = json.loads(verdict().to_json())
    found["comparisons"][0]["verdict"] = "perhaps"
    (tmp_path / VERDICT_FILE).write_text(json.dumps(found))
    with pytest.raises(TiebreakError, match="'same' or 'undecided'"):
        Verdict.read(tmp_path)


def test_a_comparison_carries_its_sides_as_data() -> None:
    content = json.loads(verdict().to_json())
    setting, pair = content["comparisons"]
    assert setting["sides"] == [
        {"arm": "pool", "setting": {"lr": lr}, "metric": "accuracy", "metrics": []} for lr in (0.1, 0.01)
    ]
    assert [side["arm"] for side in pair["sides"]] == ["pool", "strided"]
    assert (setting["a"], setting["b"]) == ("pool at lr=0.1", "pool at lr=0.01")


def test_the_sides_of_an_interaction_are_named_with_a_true_minus_sign() -> None:
    item = verdict().comparisons[0]
    assert item.side_names == ("pool at lr=0.1", "pool at lr=0.01")
    sides = tuple(item.sides[0].model_copy(update={"arm": arm}) for arm in ("a-1", "b", "c", "d - e"))
    item = item.model_copy(update={"kind": "interaction", "a": "label", "b": "label", "sides": sides})
    assert item.side_names == ("a-1 − b", "c − d - e")


def test_a_verdict_written_before_sides_were_stored_is_one_line(tmp_path: Path) -> None:
    found = json.loads(verdict().to_json())
    for item in found["comparisons"]:
        del item["sides"]
    (tmp_path / VERDICT_FILE).write_text(json.dumps(found))
    with pytest.raises(TiebreakError, match=r"sides.*`tiebreak report`") as caught:
        Verdict.read(tmp_path)
    assert "\n" not in str(caught.value)
