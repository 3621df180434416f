"""claims.html: every claim in its report's words, what was found, a small picture and the command. One file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tiebreak import files
from tiebreak.report import claim_text, formatting
from tiebreak.report.figures import claim_pictures
from tiebreak.report.page import document, tables
from tiebreak.report.page.view import tiebreak_version
from tiebreak.study.schema import Study
from tiebreak.text import printable
from tiebreak.verdict.docket import DocketEntry

if TYPE_CHECKING:
    from tiebreak.theory.claims import ClaimStatus

TITLE = "25 claims, and what became of them"


@dataclass(frozen=True, kw_only=True)
class ResultView:
    """One result that speaks of a claim, as text."""

    figures: Sequence[str]
    basis: str
    limits: str
    note: str
    origin: str
    training: str
    command: str
    leans: str
    published: Sequence[tuple[str, str, str, str]]  # source, what, figure, percentile


@dataclass(frozen=True, kw_only=True)
class ClaimView:
    """One claim, as text and pictures."""

    id: str
    text: str
    source: str
    verdict: str
    outcome: str
    sentence: str  # of an identity
    left_open: str
    picture: str
    published_picture: str
    best: ResultView | None
    others: Sequence[ResultView]
    arms: Sequence[tuple[str, str]]  # that it compares, and what each is
    meaning: str  # of a claim that an identity decides: what the result says besides
    to_decide: str
    command: str


def write_claims(path: Path, found: Sequence[ClaimStatus]) -> Path:
    """Write the page; its path."""
    return files.write(path, claims_html(found))


def claims_html(found: Sequence[ClaimStatus]) -> str:
    """The page: one file that needs no other, and no network."""
    css = (Path(__file__).parent / "page.css").read_text("utf-8")
    counts = Counter[str](each.verdict for each in found)
    order = {"holds": "hold", "fails": "fail", "hint": "have a hint", "undecided": "undecided"}
    page = document._environment().get_template("claims.html.jinja")
    return page.render(
        version=tiebreak_version(),
        css=css,
        title=TITLE if len(found) == 25 else f"{len(found)} claims",
        counts=[(counts[key], words) for key, words in order.items() if counts[key]],
        reports_line=formatting.reports_line(formatting.REPORTS),
        hint=formatting.HINT,
        mixed=formatting.MIXED if any(each.mixed for each in found) else "",
        claims=[_view(each) for each in found],
    )


def _view(status: ClaimStatus) -> ClaimView:
    outcome, results = status.outcome, [_result(each, status.entries[0]) for each in status.entries]
    reported = status.entries[0].reported if status.entries else ()
    return ClaimView(
        id=status.entry.id,
        text=status.entry.text,
        source=formatting.sources(status.entry.source),
        verdict=status.verdict,
        outcome=claim_text.outcome(status),
        sentence=outcome.sentence if outcome is not None else "",
        left_open=str(outcome.evidence.get("left_open", "")) if outcome is not None else "",
        picture=claim_pictures.picture(status),
        published_picture=claim_pictures.published(reported, name=f"published-{status.entry.id}"),
        best=results[0] if results else None,
        others=results[1:],
        arms=_arms(status),
        meaning=claim_text.meaning(status.entries[0]) if outcome is not None and status.entries else "",
        to_decide=claim_text.to_decide(status),
        command=status.command or "tiebreak claims",
    )


def _arms(status: ClaimStatus) -> list[tuple[str, str]]:
    """The arms of the built-in study that the claim compares; none of a claim that only a benchmark decides."""
    if status.entry.study is None or not status.entries:
        return []
    study = Study.load(status.entry.study)
    claim = next((each for each in study.claims if each.id == status.entry.id), None)
    names = (claim.comparison, *claim.also) if claim is not None else ()
    own = [each for each in study.comparisons if each.name in names or (claim is None and each.primary)]
    arms = dict.fromkeys(name for each in own for name in each.arms())
    return [(name, tables.arm_line(study, study.arm(name))) for name in arms]


def _result(entry: DocketEntry, best: DocketEntry) -> ResultView:
    return ResultView(
        figures=[printable(claim_text.figure(item)) for item in entry.figures],
        basis=claim_text.basis(entry),
        limits=entry.limits,
        note=entry.note,
        origin=claim_text.origin(entry),
        training=claim_text.training(entry),
        command=entry.command,
        leans=printable(claim_text.leans(entry, best)),
        published=[
            (formatting.sources([item.source]), item.what, f"{item.value:g}", claim_text.percentile(item))
            for item in entry.reported
        ],
    )
