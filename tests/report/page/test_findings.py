"""The sections of other tasks than images on whole pages: in order, escaped, light, absent without content."""

from __future__ import annotations

import dataclasses
import re

import pytest

from support import sample_findings, sample_report
from support.sample_study import CONTENT, sample_study
from support.written import Outline, page, text
from tiebreak.report.page import view

SECTIONS = ("samples", "attention", "breakdown", "graph")


def sections(written: str) -> list[str]:
    return re.findall(r'<h2 id="(\w+)"', written)


def test_the_sections_stand_in_the_order_of_the_contents_in_both_files() -> None:
    with sample_findings.many_metrics():
        evidence = sample_findings.measured(sample_findings.with_findings())
        found, markdown = sections(page(evidence)), text(evidence)
    assert {*SECTIONS, "agreement"} <= set(found)
    assert found == [anchor for anchor in view.SECTIONS if anchor in found]
    headings = [line[3:].partition(":")[0] for line in markdown.splitlines() if line.startswith("## ")]
    assert headings == [view.SECTIONS[anchor][1] for anchor in found if anchor != "curves"]


def test_without_exhibits_there_is_no_such_section() -> None:
    for evidence in (sample_report.complete(), sample_report.empty()):
        assert not {*SECTIONS, "agreement"} & set(sections(page(evidence)))
        assert "Sample outputs" not in text(evidence)


def test_hostile_exhibits_are_escaped_and_the_page_stays_light() -> None:
    evidence = sample_findings.hostile()
    written, markdown = page(evidence), text(evidence)
    outline = Outline()
    outline.feed(written)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert set(SECTIONS) <= set(sections(written))
    assert "&lt;script&gt;" in written
    for hostile in ("<script", "\x1b", "\x00", "\u202e", "\ud800"):
        assert hostile not in written
        assert hostile not in markdown
    assert len(written.encode()) < 900_000
    assert "*bold*" not in markdown.replace(r"\*", "")
    for block in re.findall(r"(?:^\|.*\n)+", markdown, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


@pytest.mark.parametrize("design", ["cnn-pool", "cnn-strided"])
def test_exhibits_missing_for_some_arms_leave_the_others(design: str) -> None:
    evidence = sample_findings.shown(sample_report.partial(), without=(design,))
    assert set(SECTIONS) <= set(sections(page(evidence)))


def test_no_word_of_images_stands_where_none_are_classified() -> None:
    arms = [arm for arm in CONTENT["arms"] if "evaluation" not in arm]
    study = sample_study(comparisons=CONTENT["comparisons"][:2], arms=arms, metric="loss", claims=[], reported=[])
    evidence = sample_findings.shown(sample_findings.of_study(study))
    terms = tuple(term for term in evidence.plan.terms if "accuracy" not in term.value)
    evidence = dataclasses.replace(evidence, plan=evidence.plan.model_copy(update={"terms": terms}))
    seen = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page(evidence), flags=re.DOTALL).lower()
    for word in ("image", "misclassified", "pixel", "confusion"):
        assert word not in seen
        assert word not in text(evidence).lower()
