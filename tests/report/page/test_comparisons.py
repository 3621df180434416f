from __future__ import annotations

import re

from support import sample_findings, sample_report
from tiebreak.report.page import comparisons


def test_comparisons_are_put_into_words() -> None:
    rows = comparisons.comparison_rows(sample_report.complete().verdict)
    assert (rows[0].outcome, rows[0].needed, rows[0].primary) == ("pool is better", "none", True)
    rows = comparisons.comparison_rows(sample_report.partial().verdict)
    assert (rows[0].outcome, rows[0].needed, rows[0].decided) == ("undecided", "4 more", False)


def test_seeds_are_all_listed_with_what_each_side_has() -> None:
    evidence = sample_report.partial()
    rows = comparisons.seed_rows(evidence.sides(evidence.verdict.primary), 10)
    assert len(rows) == 10
    assert (rows[2].b, rows[2].difference) == ("missing", "missing")
    assert rows[2].a != "missing"
    assert rows[0].difference.startswith("+")
    evidence = sample_report.empty()
    assert comparisons.seed_rows(evidence.sides(evidence.verdict.primary), 10) == []


def test_settings_of_one_question_stand_below_one_heading() -> None:
    rows = comparisons.comparison_rows(sample_report.complete().verdict)
    assert [row.heading for row in rows] == [
        "",
        "",
        rows[2].heading,
        "",
        "",
    ]
    assert re.search("best learning rate.*pool at lr=0.01", rows[2].heading)
    assert [row.label for row in rows[2:]] == ["against lr=0.1", "against lr=0.001", "robustness"]
    assert [row.outcome for row in rows[2:4]] == ["lr=0.1 is better", "lr=0.01 is better"]
    assert [row.grouped for row in rows] == [False, False, True, True, False]


def test_a_question_about_two_settings_is_one_row() -> None:
    verdict = sample_report.complete().verdict
    item = verdict.comparisons[2].model_copy(update={"name": "best learning rate"})
    (row,) = comparisons.comparison_rows(verdict.model_copy(update={"comparisons": (item,)}))
    assert (row.heading, row.label, row.outcome) == ("", "best learning rate", "pool at lr=0.1 is better")


def test_numbers_that_do_not_exist_are_not_missing() -> None:
    verdict = sample_report.complete().verdict
    assert comparisons.comparison_rows(verdict)[-1].p_a_better == "–"  # an interaction
    item = verdict.primary.model_copy(update={"examples_low": None, "examples_high": None})
    assert comparisons.comparison_rows(verdict.model_copy(update={"comparisons": (item,)}))[0].examples == "–"
    assert comparisons.comparison_rows(sample_report.empty().verdict)[0].examples == "missing"


def test_each_question_has_one_entry_of_sentences() -> None:
    told = dict(comparisons.question_answers(sample_report.complete().verdict))
    assert list(told) == ["pool vs strided", "pool vs unpadded", "best learning rate", "robustness"]
    assert told["best learning rate"].count("is better than") == 2
    assert "+0.023" in told["pool vs strided"]


def test_an_interaction_is_listed_in_differences() -> None:
    evidence = sample_report.complete()
    item = evidence.verdict.comparisons[-1]
    sides = evidence.sides(item)
    rows = comparisons.seed_rows(sides, 10)
    assert all(row.a[0] in "+-" or row.a == "0.000" for row in rows)
    assert comparisons.ahead(item, sides.pairs).startswith("pool-moved − strided-moved was larger than pool − strided")
    first = evidence.verdict.primary
    assert re.search("pool.* higher .*10 of 10", comparisons.ahead(first, evidence.sides(first).pairs))


def test_where_less_is_better_the_lower_side_is_ahead() -> None:
    evidence = sample_findings.lower_is_better()
    first, last = evidence.verdict.comparisons[0], evidence.verdict.comparisons[-1]
    pairs = evidence.sides(first).pairs
    assert first.verdict == "a"
    assert re.search("pool.* lower, .*better.*10 of 10", comparisons.ahead(first, pairs, "min"))
    told = comparisons.ahead(last, evidence.sides(last).pairs, "min")
    assert re.search("^pool-moved − strided-moved .*larger advantage.* pool − strided", told)
