from __future__ import annotations

from pathlib import Path

from support.tracker_files import SCORES
from tiebreak.report.page import score_page
from tiebreak.verdict.scores import Scores
from tiebreak.verdict.table_verdict import TableQuestion, table_verdict

EVIL = "<script>alert(1)</script>"


def page(sets: dict[str, Scores], **asked: object) -> str:
    question = TableQuestion(name="s.csv", metric="accuracy", margin=0.005, **asked)  # type: ignore[arg-type]
    return score_page.html(table_verdict(sets, question), sets)


def test_the_page_has_the_answer_every_score_and_no_section_that_needs_a_plan(tmp_path: Path) -> None:
    shown = page({"": SCORES})
    assert "Is resnet better than vit in accuracy?" in shown
    assert shown.count("<svg") > 2
    assert all(f">{score:.3f}<" in shown for own in SCORES.values() for score in own.values())
    assert not any(word in shown for word in ("Settings tried", "Learning curves", "held equal", "Failed and missing"))
    assert "was not checked" in shown
    verdict = table_verdict({"": SCORES}, TableQuestion(name="s.csv", margin=0.005))
    assert score_page.write_score_report(tmp_path, verdict, {"": SCORES}).name == "report.html"
    assert "| vit |" in (tmp_path / "report.md").read_text()


def test_names_of_strangers_are_escaped() -> None:
    assert EVIL not in page({EVIL: {EVIL: SCORES["vit"], "b": SCORES["resnet"]}})


def test_welch_and_data_sets_say_what_they_are() -> None:
    unpaired: Scores = {"a": SCORES["vit"], "b": {int(seed) + 50: score for seed, score in SCORES["resnet"].items()}}
    shown = page({"": unpaired})
    assert "Welch" in shown
    assert "Each line joins" not in shown
    shown = page({f"set{number}": SCORES for number in range(6)})
    assert "Wilcoxon" in shown
    assert "Small dots: one data set each" in shown


def test_many_arms_have_a_page_too() -> None:
    many = {f"arm{number}": SCORES["vit"] for number in range(30)}
    shown = page({"": many}, pairs=[(f"arm{number}", "arm0") for number in range(1, 30)])
    assert shown.count('class="difference"') == score_page.MOST_DRAWN
    assert "0 of 29 decided" in shown
