from __future__ import annotations

import pytest

from support import sample_report
from tiebreak.exchange.export_content import of_scores, of_study
from tiebreak.exchange.latex_export import comparisons_table, escape, numbers, sentence
from tiebreak.verdict.model import Look
from tiebreak.verdict.scores import Scores
from tiebreak.verdict.sentences import answer
from tiebreak.verdict.table_verdict import TableQuestion, table_verdict


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a_b & c", r"a\_b \& c"),
        ("100 %", r"100 \%"),
        (r"\def{x}", r"\textbackslash{}def\{x\}"),
        ("[x]", "{[}x{]}"),
        ("naïve Größe", "naïve Größe"),
        ("α − β ±1", r"$\alpha$ $-$ $\beta$ $\pm$1"),
        ("中\x1b", r"U+4E2D\textbackslash{}x1b"),
        ("two\nlines", "two lines"),
        ("Ngườ ș", "NgU+01B0U+1EDD ș"),
        ("--a-b", "-{}-a-b"),
    ],
)
def test_any_text_becomes_latex_that_compiles(text: str, latex: str) -> None:
    assert escape(text) == latex


def test_signed_numbers_are_mathematics() -> None:
    assert numbers("accuracy -0.003, +1.5 to x-1") == "accuracy $-0.003$, $+1.5$ to x-1"


def test_comparisons_over_data_sets_are_a_family_of_their_own() -> None:
    scores: Scores = {"a": {0: 1.0, 1: 2.0}, "b": {0: 2.0, 1: 2.5}, "c": {0: 3.0, 1: 1.0}}
    sets = dict.fromkeys("xyz", scores)
    content = of_scores(table_verdict(sets, TableQuestion(name="t", margin=0.1)), sets)
    for text in (sentence(content), comparisons_table(content)):
        assert "9 comparisons on single data sets" in text
        assert "apart from these, for the 3 over data sets" in text


def test_the_sentence_for_a_paper_names_no_option_of_a_command() -> None:
    whole = sample_report.complete()
    first = whole.verdict.comparisons[0].model_copy(update={"verdict": "undecided", "seeds": 5, "seeds_needed": 90})
    verdict = whole.verdict.model_copy(update={"comparisons": (first, *whole.verdict.comparisons[1:])})
    assert "--seeds" in answer(verdict.comparisons, seeds=5, complete=True)
    text = sentence(of_study(whole.study, whole.plan, whole.records, verdict))
    assert text.startswith("Undecided")
    assert "--" not in text.replace("-{}-", "--")


def test_looks_are_said() -> None:
    whole = sample_report.complete()
    look = Look(seeds=7, difference=0.1, low=0.0, high=0.2, level=0.02)
    first = whole.verdict.comparisons[0].model_copy(update={"path": (look, look.model_copy(update={"seeds": 10}))})
    verdict = whole.verdict.model_copy(update={"comparisons": (first, *whole.verdict.comparisons[1:])})
    assert "7 and 10 seeds" in sentence(of_study(whole.study, whole.plan, whole.records, verdict))
