"""Reports as text, and what is checked of any HTML page."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from tiebreak.report.evidence import Evidence
from tiebreak.report.page import document

_PAGES: dict[int, tuple[Evidence, str]] = {}  # by the evidence's id, which is its own while the evidence is kept


def page(evidence: Evidence) -> str:
    """The page, written once for each evidence: it takes a second. For a test that patches something: `fresh_page`."""
    if id(evidence) not in _PAGES:
        _PAGES[id(evidence)] = evidence, fresh_page(evidence)
    return _PAGES[id(evidence)][1]


def fresh_page(evidence: Evidence) -> str:
    """The page as it is written now."""
    return document.html(evidence.study, evidence.plan, evidence.records, evidence.verdict)


def text(evidence: Evidence) -> str:
    """The same as Markdown."""
    return document.markdown(evidence.study, evidence.plan, evidence.records, evidence.verdict)


class Outline(HTMLParser):
    """Checks that tags are closed in order, and collects ids, references and what would be loaded."""

    void = frozenset({"meta", "br", "link", "img", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.headings: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in self.void:
            self.open.append(tag)
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for key, value in attrs:
            if key == "id" and value:
                self.ids.append(value)
            if key in ("href", "src", "aria-labelledby") and value:
                self.links.append(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.void:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
