"""The tested differences of a study, in its order."""

from __future__ import annotations

from support import hand_made
from tiebreak.results.record import Records
from tiebreak.results.tally import Tally
from tiebreak.verdict.questions import all_questions, sample


def test_a_best_setting_asks_once_for_each_other_setting() -> None:
    comparisons = [
        {"a": "pool", "b": "strided", "primary": True},
        {"kind": "setting", "name": "best", "arm": "pool", "expect": {"lr": 0.1}},
    ]
    study = hand_made.study(comparisons=comparisons, grid={"lr": [0.1, 0.01, 0.001]})
    book = hand_made.Book(hand_made.plan(study))
    for seed, score in enumerate((0.5, 0.25)):
        book.done("pool", {"lr": 0.1}, seed, val=0.5, test=score, losses=[1.0, 1.0])
    book.done("pool", {"lr": 0.01}, 1, val=0.5, test=0.75, losses=[1.0, 1.0])
    tally = Tally(study, book.plan, Records(epochs=book.epochs, runs=book.runs, finals=book.finals))
    asked = all_questions(tally)
    assert [question.b for question in asked] == ["strided", "pool at lr=0.01", "pool at lr=0.001"]
    found = sample(tally, asked[1])  # of the seed that both have
    assert (list(found.a), list(found.b)) == ([0.25], [0.75])  # type: ignore[arg-type]
    assert asked[1].range("classify") == (-1.0, 1.0)
