from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from support import sample_exhibits, sample_report
from support.written import Outline, fresh_page, page, text
from tiebreak.report.evidence import Evidence
from tiebreak.report.exhibits import gallery, prepared
from tiebreak.report.page import document

HOSTILE = ("<script>alert(1)</script>", "a|b *bold*", "c\x1b[31m")
SECTIONS = ("robustness", "examples", "confusions", "activations")


def headings(written: str) -> list[str]:
    return re.findall(r'<h2 id="(\w+)"', written)


def test_every_exhibit_has_a_section_with_a_caption() -> None:
    written = page(sample_exhibits.with_exhibits())
    for name in SECTIONS:
        start = written.index(f'<section aria-labelledby="{name}">')
        section = written[start : written.index("</section>", start)]
        assert re.search(r'<figcaption>|<p class="note">', section)
        assert "seed" in section
    assert "pool: n = 10 of 10 seeds" in written
    assert "share the trained networks of pool and strided" in written
    assert "share one\nscale" in written or "share one scale" in written


def test_without_exhibits_there_is_no_such_section() -> None:
    for evidence in (sample_report.complete(), sample_report.empty()):
        assert not set(SECTIONS) & set(headings(page(evidence)))
        assert "Robustness" not in page(evidence)
        assert "moved before the network" not in text(evidence)


def test_answers_are_marked_by_a_tick_or_a_cross_with_a_name() -> None:
    written = page(sample_exhibits.with_exhibits())
    cards = written[written.index('class="cards"') :]
    assert 'aria-label="wrong"' in cards
    assert 'aria-label="right"' in cards
    assert re.search(r"strided: <strong>8</strong> <span class=\"muted\">\(10 of 10\)</span>", cards)


def test_markdown_has_the_same_in_tables_and_words() -> None:
    written = text(sample_exhibits.with_exhibits())
    assert "| shift to the right, pixels | seeds | -4 | -3 |" in written
    assert re.search(r"^\| strided \| 10 \|( 0\.\d{3} \|){5}$", written, re.MULTILINE)
    assert "| 7 | 7 | 8, wrong (10 of 10) | 8, wrong (10 of 10) |" in written
    assert re.search(r"^- pool, 10 seeds: \d classified as \d \([\d.]+ % of its images\);", written, re.MULTILINE)
    assert "pool (seed 0), strided (seed 0), unpadded (seed 0)." in written
    for block in re.findall(r"(?:^\|.*\n)+", written, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1


@pytest.mark.parametrize(
    ("names", "shape"),
    [
        (("normal", "pneumonia"), (28, 28)),
        (tuple(f"class {n}" for n in range(20)), (64, 64, 3)),
        (HOSTILE, (28, 28, 1)),
    ],
)
def test_pages_of_any_data_are_well_formed_and_light(names: tuple[str, ...], shape: tuple[int, ...]) -> None:
    written = page(sample_exhibits.shown(sample_report.with_reported(), names=names, shape=shape))
    outline = Outline()
    outline.feed(written)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert "script" not in outline.tags
    assert len(written) < 600_000
    assert set(SECTIONS) <= set(headings(written))


def test_class_names_are_escaped_everywhere() -> None:
    evidence = sample_exhibits.shown(sample_report.complete(), names=HOSTILE)
    written, markdown = page(evidence), text(evidence)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in written
    assert "<script" not in written
    assert "\x1b" not in written + markdown
    assert "<script" not in markdown
    assert "a\\|b \\*bold\\*" in markdown


def test_many_large_noisy_images_keep_the_page_light() -> None:
    whole = sample_exhibits.with_exhibits()
    random = np.random.default_rng(0)
    noise = random.integers(0, 256, (12, 224, 224, 3), dtype=np.uint8)
    maps = random.random((3, 64, 112, 112)).astype(np.float16)
    heavy = sample_exhibits.changed(whole, "examples", images=noise)
    heavy = sample_exhibits.changed(heavy, "activations", images=noise[:3], maps=maps)
    written = page(heavy)
    assert len(written.encode()) < 600_000
    assert "the first 8 of 64 maps of 112 × 112 values" in written


def test_more_arms_than_fit_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "MOST_MATRICES", 2)
    monkeypatch.setattr(gallery, "MOST_BLOCKS", 1)
    written = fresh_page(sample_exhibits.with_exhibits())
    assert "Drawn: 2 of 3 arms" in written
    assert "Shown: 1 of 3 arms." in written


def test_exhibits_missing_for_some_arms_leave_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    evidence = sample_exhibits.shown(sample_report.partial(), without=("cnn-pool",))
    written = page(evidence)
    assert "strided: n = 5 of 10 seeds" in written
    assert "pool: n =" not in written.replace("pool, lr=0.1: n =", "")
    assert set(SECTIONS) <= set(headings(written))
    assert capsys.readouterr().err == ""


def test_the_digest_sees_exhibits() -> None:
    whole = sample_exhibits.with_exhibits()

    def digest(evidence: Evidence) -> str:
        return document.inputs_digest(evidence.plan, evidence.records, evidence.verdict)

    other = sample_exhibits.changed(whole, "robustness", shift_accuracy=np.zeros(9, np.float32))
    assert digest(other) != digest(whole)
    bare = dataclasses.replace(whole, records=dataclasses.replace(whole.records, exhibits={}))
    assert digest(bare) != digest(whole)
    elsewhere = {**whole.records.exhibits, "another study's": next(iter(whole.records.exhibits.values()))}
    same = dataclasses.replace(whole, records=dataclasses.replace(whole.records, exhibits=elsewhere))
    assert digest(same) == digest(whole)


def test_maps_that_see_shuffled_pixels_say_so() -> None:
    (first, *_) = prepared.activations(sample_exhibits.with_exhibits())
    block = gallery._blocks([dataclasses.replace(first, shuffled=True)])[0]
    assert block.title.startswith("pool, seed 0: 8 maps of 28 × 28")
    assert "pixels shuffled" in block.title


def test_moved_images_have_a_section_only_where_the_study_asks() -> None:
    evidence = sample_exhibits.with_exhibits()
    assert gallery.content(evidence)["robustness"]
    arms = tuple(arm.model_copy(update={"evaluation": {}}) for arm in evidence.study.arms)
    study = evidence.study.model_copy(update={"arms": arms})
    assert gallery.content(dataclasses.replace(evidence, study=study))["robustness"] == []


def test_the_recall_of_each_class_stands_in_a_table() -> None:
    evidence = sample_exhibits.with_exhibits()
    arm, _, shares = gallery.content(evidence)["recalls"][0]
    assert arm == "pool"
    assert len(shares) == len(gallery.content(evidence)["class_names"])
    assert "Recall of each class" in page(evidence)
    assert "Recall of each class" in text(evidence)
