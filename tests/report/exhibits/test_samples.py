from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import sample_findings, sample_report
from support.sample_exhibits import changed
from support.written import page, text
from tiebreak.report.exhibits import samples


def rebuilt(pieces: list[samples.Piece]) -> tuple[str, str]:
    """The reference and the output that the pieces tell."""
    expected = "".join(p.text if p.kind in ("same", "missing") else p.instead for p in pieces)
    return expected, "".join(p.text for p in pieces if p.kind != "missing")


@given(st.text("abcé", max_size=30), st.text("abcé", max_size=30))
def test_the_pieces_tell_the_reference_and_the_output(reference: str, output: str) -> None:
    assert rebuilt(samples.aligned(reference, output)) == (reference, output)


@given(st.text(max_size=60))
def test_letters_make_up_the_text_and_nothing_is_marked_in_a_right_answer(words: str) -> None:
    assert "".join(samples.letters(words)) == words
    assert all(piece.kind == "same" for piece in samples.aligned(words, words))


def test_errors_are_marked_by_kind() -> None:
    pieces = samples.aligned("the library", "tha librry s")
    assert [(p.kind, p.text, p.instead) for p in pieces if p.kind != "same"] == [
        ("wrong", "a", "e"),
        ("missing", "a", ""),
        ("added", "␣s", ""),
    ]
    assert "".join(piece.plain() for piece in pieces) == "th[-e-]{+a+} libr[-a-]ry{+␣s+}"


def test_an_accent_stays_with_its_letter_and_an_emoji_whole() -> None:
    assert samples.letters("e\u0301a 👩🏽‍🚀!") == ["e\u0301", "a", " ", "👩🏽‍🚀", "!"]
    assert [piece.text for piece in samples.aligned("cafe\u0301", "cafe")] == ["caf", "e"]


def test_what_could_drive_a_page_is_replaced() -> None:
    assert samples.visible("a\x1b[0m\u202eb\ud800\n") == "a�[0m�b�\n"


def test_every_arm_stands_below_each_example_with_its_errors() -> None:
    found, heading = samples.samples(sample_findings.with_findings())
    assert heading == ("Spanish", "English", "translation")
    assert [[output.arm for output in sample.outputs] for sample in found] == [["pool", "strided", "unpadded"]] * 3
    assert [output.errors for output in found[1].outputs] == [
        "1 error, 21 letters in the reference",
        "5 errors, 21 letters in the reference",
        "1 error, 21 letters in the reference",
    ]
    written = page(sample_findings.with_findings())
    assert 'Where is the lib<del>r</del>ary?</p><p class="small">1 error' in written
    assert '<mark class="wrong" title="instead of T">t</mark>he ho' in written
    assert '<mark class="added">␣</mark>morning' in written
    assert "Where is the lib\\[-r-\\]ary? (1 error" in text(sample_findings.with_findings())


def test_without_a_reference_the_text_is_plain() -> None:
    evidence = changed(sample_findings.with_findings(), "samples", reference=np.asarray(["", "", ""]))
    found, _ = samples.samples(evidence)
    assert all(piece.kind == "same" for sample in found for output in sample.outputs for piece in output.pieces)
    written = page(evidence)
    assert "<mark" not in written
    assert "<del" not in written
    assert "reference</span>" not in written


def test_a_text_that_ends_at_once_is_told() -> None:
    empty = np.asarray(["", "", ""])
    evidence = changed(sample_findings.with_findings(), "samples", reference=empty, output=empty)
    assert '<span class="muted">(nothing)</span>' in page(evidence)
    assert ": (nothing)" in text(evidence)


def test_one_prompt_continued_twice_is_two_examples() -> None:
    twice, empty = np.asarray(["once", "once"]), np.asarray(["", ""])
    evidence = changed(
        sample_findings.with_findings(), "samples", input=twice, reference=empty, output=np.asarray(["upon", "more"])
    )
    found, _ = samples.samples(evidence)
    assert [sample.outputs[0].plain() for sample in found] == ["upon", "more"]


def test_arms_without_samples_are_left_out_and_broken_ones_too() -> None:
    found, _ = samples.samples(sample_findings.shown(sample_report.complete(), without=("cnn-pool",)))
    assert [output.arm for output in found[0].outputs] == ["strided", "unpadded"]
    for broken in (np.zeros((3, 2)), np.zeros(3), None):
        evidence = changed(sample_findings.with_findings(), "samples", output=broken)
        assert samples.samples(evidence)[0] == []
    nothing = changed(
        sample_findings.with_findings(), "samples", **dict.fromkeys(samples.HEADING, np.asarray([], dtype="U1"))
    )
    assert 'id="samples"' not in page(nothing)


def test_long_texts_are_cut_and_the_rest_is_counted() -> None:
    pieces = samples._shortened(samples.aligned("x" * 2000, "y" * 2000))
    assert len(pieces[0].text) <= samples.LONGEST
    assert pieces[-1].text == f" … and {2000 - len(pieces[0].text):,} more letters"


def test_only_as_many_examples_as_fit_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "BUDGET", 800)
    assert samples.content(sample_findings.with_findings())["samples_left"] == "Shown: 1 of 3 examples."
