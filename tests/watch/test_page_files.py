"""The files of the page: nothing inline, nothing from elsewhere, the report's colours."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tiebreak.report.figures import drawing
from tiebreak.report.page import document
from tiebreak.watch import web_app

FILES = {path.name: path.read_text("utf-8") for path in web_app.PAGE.iterdir()}
SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))


def test_a_policy_that_forbids_everything_inline_stops_nothing() -> None:
    page = FILES["index.html"]
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", page)
    assert re.findall(r'(?:src|href)="([^"]+)"', page) == ["/static/icon.svg", "/static/page.css", "/static/page.js"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_makes_no_markup_of_text_and_loads_only_its_neighbours(name: str) -> None:
    text = FILES[name]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser", text)
    assert set(re.findall(r'from "([^"]+)"', text)) <= {f"./{other}" for other in SCRIPTS}
    assert set(re.findall(r"https?://[^\s\"']+", text)) <= {"http://www.w3.org/2000/svg"}


def test_colours_and_markers_are_the_reports() -> None:
    found = re.findall(r"const (?:PALETTE|SWATCHES) = (\[.*?\]);", FILES["plot.js"], re.DOTALL)
    palette, swatches = (json.loads(re.sub(r",\s*\]", "]", text)) for text in found)
    assert tuple(palette) == drawing.PALETTE
    assert tuple(swatches) == drawing.SWATCHES
    ours, theirs = FILES["page.css"], (Path(document.__file__).parent / "page.css").read_text("utf-8")
    variables = re.compile(r"--(paper|ink|muted|rule|soft|link|alert): (#\w+)")
    assert variables.findall(ours) == variables.findall(theirs)[:14]  # the third set is for paper
