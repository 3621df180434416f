from __future__ import annotations

import re
from pathlib import Path

import pytest

from tiebreak.report.page.claim_page import claims_html, write_claims
from tiebreak.theory import claims, identities
from tiebreak.theory.claims import LEDGER, ClaimStatus
from tiebreak.verdict.docket import read_docket


@pytest.fixture(scope="module")
def found() -> list[ClaimStatus]:
    return claims.statuses(identities.outcomes(lambda _: None), {"pooling": "octmnist"}, read_docket())


@pytest.fixture(scope="module")
def page(found: list[ClaimStatus]) -> str:
    return claims_html(found)


def test_every_claim_stands_there_in_its_words_with_an_outcome(page: str) -> None:
    articles = re.findall(r'<article class="claim" id="([^"]+)">(.*?)</article>', page, re.S)
    assert [name for name, _ in articles] == [entry.id for entry in LEDGER]
    for _, text in articles:
        assert re.search(r'class="badge (holds|fails|hint|undecided)"', text)


def test_every_claim_with_evidence_has_a_picture(page: str, found: list[ClaimStatus]) -> None:
    articles = re.findall(r'<article class="claim" id="[^"]+">(.*?)</article>', page, re.S)
    for status, text in zip(found, articles, strict=True):
        assert ("<svg" in text) == (status.outcome is not None or status.best is not None), status.entry.id


def test_published_figures_have_their_percentile_and_n(page: str) -> None:
    assert "6th percentile, estimated from 10 runs" in page


def test_the_page_needs_no_network_and_its_references_resolve(page: str) -> None:
    assert not re.search(r"https?://|<script", page)
    names = re.findall(r'id="([^"]+)"', page)
    assert len(names) == len(set(names))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(names)


def test_text_of_a_results_file_is_escaped(found: list[ClaimStatus], tmp_path: Path) -> None:
    entry = read_docket()[0].model_copy(update={"claim": "pool-beats-stride", "limits": "<script>alert(1)</script>"})
    whole = claims.statuses({each.entry.id: each.outcome for each in found if each.outcome}, {}, [entry])
    path = write_claims(tmp_path / "claims.html", whole)
    assert "<script>" not in path.read_text("utf-8")


def test_arms_are_explained_and_commands_are_broken_between_words_only(page: str) -> None:
    article = page.split('id="lm-held-out">')[1].split("</article>", maxsplit=1)[0]
    assert "<dt>summed</dt>" in article
    assert "evaluation_trains=False (the option: evaluation passes" in article
    assert '<span class="word">--strategy</span> <span class="word">fused</span>' in page
    longer = page.split('id="more-epochs-help">')[1].split("</article>", maxsplit=1)[0]
    assert "2 times the epochs" in longer
