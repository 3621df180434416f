from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tiebreak.report.figures import claim_pictures
from tiebreak.theory import identities
from tiebreak.verdict.docket import DocketEntry, read_docket


@pytest.mark.parametrize("entry", read_docket(), ids=lambda entry: f"{entry.claim}, {entry.data}")
def test_a_result_is_drawn_small_and_labelled_with_its_figures(entry: DocketEntry) -> None:
    svg = claim_pictures.intervals(entry, name="x")
    root = ElementTree.fromstring(svg)
    assert entry.figures[0].what in str(root.get("aria-label"))
    assert len(svg) < 40_000
    assert min(int(size) for size in re.findall(r"font-size: (\d+)px", svg)) >= 11


def test_every_identity_has_a_picture() -> None:
    for claim, outcome in identities.outcomes(lambda _: None).items():
        assert claim_pictures.identity_picture(claim, outcome.evidence), claim
    assert claim_pictures.identity_picture("unknown", {}) == ""


def test_published_figures_are_drawn_and_labelled_with_their_percentile() -> None:
    entry = next(each for each in read_docket() if each.claim == "attention-translates")
    assert "6th percentile, estimated from 10 runs" in claim_pictures.published(entry.reported, name="x")
    assert claim_pictures.published((), name="x") == ""


def test_a_long_title_has_two_lines_and_is_cut_after_the_second() -> None:
    entry, long = read_docket()[0], "accuracy: (cnn − mlp) − (cnn-shuffled − mlp-shuffled)"

    def drawn(title: str) -> list[str]:
        figure = entry.figures[0].model_copy(update={"what": title})
        svg = claim_pictures.intervals(entry.model_copy(update={"figures": (figure,)}), name="x")
        return [text for text in ElementTree.fromstring(svg).itertext() if text.strip()]

    assert long in " ".join(drawn(long))
    assert any(text.endswith("…") for text in drawn(4 * long))
