from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import sample_exhibits, sample_findings, sample_report
from support.sample_study import sample_study
from support.written import Outline, page, text
from tiebreak.report.evidence import Evidence
from tiebreak.report.page import comparisons, document, view
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.model import ComparisonResult, Look, RankedArm, Verdict

ATTACK = '<script>alert("x")</script> & | `code` *bold*'
EVERY = [
    sample_report.complete,
    sample_report.partial,
    sample_report.empty,
    sample_exhibits.with_exhibits,
    sample_findings.with_findings,
]


@pytest.mark.parametrize("make", EVERY)
def test_the_page_is_well_formed_and_needs_nothing_else(make: object) -> None:
    assert callable(make)
    written = page(make())
    outline = Outline()
    outline.feed(written)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    loaded = [link for link in outline.links if not link.startswith("data:image/png;base64,")]
    assert all(link.removeprefix("#") in outline.ids for link in loaded)
    assert not outline.tags & {"script", "link", "iframe", "object"}
    assert not re.search(r"https?://|@import|url\((?!#)", written)
    assert outline.headings[0] == 1
    assert all(later - former <= 1 for former, later in zip(outline.headings, outline.headings[1:], strict=False))


def test_the_first_screen_holds_question_answer_difference_seeds_and_cost() -> None:
    evidence = sample_report.complete()
    first, _, _ = page(evidence).partition("</header>")
    for expected in (
        evidence.study.question,
        comparisons.answer(evidence.verdict).replace(" %", "\N{NO-BREAK SPACE}%"),
        "What this means:",
        "about 23 more right",
        "+0.023",
        "10 of 10",
        "225,612",
        "min",
        "±0.005",
    ):
        assert expected in first
    assert first.count('class="chart"') == 2  # one for phones, one for pages


def test_everything_asked_for_is_on_the_page() -> None:
    written = page(sample_exhibits.with_exhibits())
    headings = re.findall(r"<h2[^>]*>([^<]+)</h2>", written)
    elsewhere = ("agreement", "samples", "attention", "breakdown", "graph")  # see test_findings.py
    assert headings == [heading for anchor, (_, heading) in view.SECTIONS.items() if anchor not in elsewhere]
    assert [line.removeprefix("## ").partition(":")[0] for line in text(sample_exhibits.with_exhibits()).splitlines()
            if line.startswith("## ")] == [heading for heading in headings if heading != "Learning curves"]  # fmt: skip
    assert "95&nbsp;% t interval of that mean" in written
    assert "neither confirms nor refutes" in written
    assert "2.13.0+cpu" in written
    assert "CC BY-SA 3.0" in written
    assert "tiebreak run study.toml" in written
    assert "−0.0" in page(sample_report.partial())  # a true minus sign


@pytest.mark.parametrize("make", EVERY)
def test_the_table_of_contents_names_every_section_in_order(make: object) -> None:
    assert callable(make)
    written = page(make())
    contents = re.search(r"<nav.*?</nav>", written, re.DOTALL)
    assert contents is not None
    assert re.findall(r'href="#(\w+)"', contents[0]) == re.findall(r'<h2 id="(\w+)"', written)


def test_no_arm_is_better_in_an_interaction() -> None:
    questions = [{"kind": "interaction", "a": "pool", "b": "unpadded", "c": "pool-moved", "d": "strided-moved"}]
    study = sample_study(comparisons=questions, claims=[])
    plan = sample_report.make_plan(study)
    records = sample_report.make_records(study, plan)
    verdict = make_verdict(study, plan, records)
    assert verdict.primary.verdict == "b"
    for render in (document.html, document.markdown):
        written = render(study, plan, records, verdict)
        assert "smaller for pool − unpadded" in written
        assert "(pool − unpadded) − (pool-moved − strided-moved)" in written
        assert not re.search(r"unpadded (is )?better", written)
    assert "the advantage is smaller for pool − unpadded" in document.html(study, plan, records, verdict)
    evidence = Evidence(study=study, plan=plan, records=records, verdict=verdict)
    assert "smaller for pool − unpadded" in document.fragment(evidence)


def test_settings_of_one_question_are_named_once() -> None:
    written = page(sample_report.complete())
    heading = comparisons.comparison_rows(sample_report.complete().verdict)[2].heading
    assert written.count(heading) == 1
    assert "best learning rate: pool at lr=0.01 vs" not in written
    assert "| against lr=0.1 |" in text(sample_report.complete())


def test_no_section_for_what_does_not_exist() -> None:
    assert "Published figures" not in page(sample_report.complete())
    assert "Published figures" not in text(sample_report.complete())
    assert "None: every planned run" in page(sample_report.complete())


@pytest.mark.parametrize("render", [page, text])
def test_synthetic_speech_is_called_so(render: object) -> None:
    assert callable(render)
    whole = sample_report.complete()
    data = whole.plan.data.model_copy(update={"synthetic": True})
    made = dataclasses.replace(whole, plan=whole.plan.model_copy(update={"data": data}))
    assert render(made).count("synthetic speech") == 2, "at the head, and where the data come from"
    assert "synthetic" not in render(whole)


@pytest.mark.parametrize("render", [page, text])
def test_missing_and_failed_runs_are_named(render: object) -> None:
    assert callable(render)
    written = render(sample_report.partial())
    for expected in (
        "74 of 90 planned runs",
        "6 diverged or failed",
        "80 of 90 planned runs",
        "train_loss is nan",
        "5 of 10",
        "not started",
        "2 of 3 epochs trained",
    ):
        assert expected in written
    assert "missing" in render(sample_report.empty())


def test_everything_from_data_and_study_files_is_escaped() -> None:
    written = page(sample_report.attacked(ATTACK))
    assert "<script" not in written
    assert "&lt;script&gt;" in written
    assert "<script" not in document.fragment(sample_report.attacked(ATTACK))
    markdown = text(sample_report.attacked(ATTACK))
    assert "<script" not in markdown
    assert "*bold*" not in markdown.replace(r"\*", "")
    for line in markdown.splitlines():
        if line.startswith("|"):
            cells = len(re.findall(r"(?<!\\)\|", line))
            assert cells in (4, 5, 6, 8, 9, 10, 11, 12)


def test_a_study_question_cannot_inject() -> None:
    study = sample_study(question="Is <script>alert(1)</script> better?")
    plan = sample_report.make_plan(study)
    records = sample_report.make_records(study, plan)
    verdict = make_verdict(study, plan, records)
    written = document.html(study, plan, records, verdict)
    assert "Is &lt;script&gt;alert(1)&lt;/script&gt; better?" in written
    assert "<script" not in written


def test_the_fragment_is_small_and_complete() -> None:
    evidence = sample_report.complete()
    written = document.fragment(evidence)
    assert len(written) < 60_000
    assert written.count('<svg class="chart"') == 3  # the difference, the seeds, the learning curve
    for expected in (
        comparisons.answer(evidence.verdict),
        "unpadded",
        "pool vs strided",
        "+0.023",
    ):
        assert expected in written
    assert "0 of 90 planned runs" in document.fragment(sample_report.empty())


def test_both_files_are_written_whole_and_known_to_be_current(tmp_path: Path) -> None:
    evidence = sample_report.complete()
    digest = document.inputs_digest(evidence.plan, evidence.records, evidence.verdict)
    folder = tmp_path / "results"
    assert not document.is_current(folder, digest)
    path = document.write_report(folder, evidence.study, evidence.plan, evidence.records, evidence.verdict)
    assert path == folder / "report.html"
    assert sorted(item.name for item in folder.iterdir()) == ["report.html", "report.md"]
    assert document.is_current(folder, digest)
    assert not document.is_current(folder, "0" * 20)
    (folder / "report.md").unlink()
    assert not document.is_current(folder, digest)


def test_a_failed_write_leaves_the_old_report(tmp_path: Path) -> None:
    evidence = sample_report.complete()
    document.write_report(tmp_path, evidence.study, evidence.plan, evidence.records, evidence.verdict)
    before = (tmp_path / "report.html").read_bytes()
    broken = evidence.verdict.model_copy(update={"comparisons": ()})
    with pytest.raises((IndexError, ValueError)):
        document.write_report(tmp_path, evidence.study, evidence.plan, evidence.records, broken)
    assert (tmp_path / "report.html").read_bytes() == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["report.html", "report.md"]


def test_the_digest_sees_every_shown_change_and_nothing_else() -> None:
    evidence = sample_report.complete()
    plan, records, verdict = evidence.plan, evidence.records, evidence.verdict
    digest = document.inputs_digest(plan, records, verdict)
    assert document.inputs_digest(plan, records, verdict.model_copy(update={"answer": "other"})) != digest
    identity = next(iter(records.runs))
    runs = {**records.runs, identity: dataclasses.replace(records.runs[identity], reason="other")}
    assert document.inputs_digest(plan, dataclasses.replace(records, runs=runs), verdict) != digest
    final = records.finals[identity]["default"]
    others = {"x": {"default": final}}  # a run of another study in the same store
    finals = {**records.finals, **others}
    assert document.inputs_digest(plan, dataclasses.replace(records, finals=finals), verdict) == digest


def test_reading_the_digest_imports_nothing_heavy() -> None:
    code = (
        "import sys, pathlib; from tiebreak.report.page import document; import tiebreak.report.terminal.summaries; "
        "document.is_current(pathlib.Path('nowhere'), 'x'); "
        "print([name for name in ('torch', 'matplotlib', 'jinja2', 'scipy.stats') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_markdown_has_the_ranking_and_the_looks_that_the_page_draws() -> None:
    whole = sample_report.complete()
    looks = tuple(Look(seeds=n, difference=0.02, low=-0.01, high=0.05, level=0.0045) for n in (6, 9))
    main, *others = whole.verdict.comparisons
    ranking = [
        RankedArm(name="pool", mean=0.9, letters="a", beats={"strided": 0.83}),
        RankedArm(name="strided", mean=0.8, letters="ab", beats={"pool": 0.17}),
    ]
    changes = {"comparisons": (main.model_copy(update={"path": looks}), *others), "ranking": tuple(ranking)}
    found = text(dataclasses.replace(whole, verdict=whole.verdict.model_copy(update=changes)))
    assert "| 6 | +0.020 | -0.010 to +0.050 | 0.45 % |" in found
    assert "| 9 | +0.020 | -0.010 to +0.050 | 0.45 % |" in found
    assert "| pool | a | 0.9 | – | 0.83 |" in found
    assert "| strided | ab | 0.8 | 0.17 | – |" in found
    few = text(dataclasses.replace(whole, verdict=whole.verdict.model_copy(update={**changes, "seeds": 5})))
    assert "5 seeds cannot tell 2 arms apart" in few
    assert "| pool | – | 0.9 |" in few
    once = text(dataclasses.replace(whole, verdict=whole.verdict.model_copy(update={"ranking": ()})))
    assert "Looks at" not in once
    assert "share a letter" not in once


@pytest.mark.parametrize("render", [page, text])
def test_a_finding_that_another_test_set_may_not_show_is_called_so(render: Callable[[Evidence], str]) -> None:
    whole = sample_report.complete()
    main, *others = whole.verdict.comparisons
    narrow = main.model_copy(update={"verdict": "a", "crossed_low": -0.01, "crossed_high": 0.05})
    said = "the finding is about this test set"
    assert said in render(dataclasses.replace(whole, verdict=with_comparisons(whole, narrow, *others)))
    clear = narrow.model_copy(update={"crossed_low": 0.01})
    assert said not in render(dataclasses.replace(whole, verdict=with_comparisons(whole, clear, *others)))


def with_comparisons(whole: Evidence, *items: ComparisonResult) -> Verdict:
    return whole.verdict.model_copy(update={"comparisons": items})
