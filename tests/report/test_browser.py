"""The report in headless Chromium: it shows something, fits a phone, prints, and loads nothing from elsewhere."""

from __future__ import annotations

import html
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
import sample_report

from tiebreak.report import document

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
# A window is never narrower than 500 px, a frame is as narrow as asked for, and its owner may measure it.
MEASURE = """<!doctype html><iframe id="page" style="width:{width}px;height:800px;border:0" srcdoc="{page}"></iframe>
<script>addEventListener("load", () => {{
  const inner = document.getElementById("page").contentDocument, root = inner.documentElement;
  const out = document.createElement("output");
  out.id = "measured";
  out.textContent = [root.clientWidth, root.scrollWidth, inner.body.scrollWidth].join(" ");
  document.body.append(out);
}});</script>"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: `make browser-test` installs it"),
]


def browse(tmp_path: Path, page: Path, *options: str) -> str:
    command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.fixture
def page(tmp_path: Path) -> Path:
    it = sample_report.with_reported()
    return document.write_report(tmp_path / "results", it.study, it.plan, it.records, it.verdict)


def measured(tmp_path: Path, page: Path, width: int) -> list[int]:
    """Width of the frame, of the page in it and of its body."""
    outer = page.with_name("frame.html")
    outer.write_text(MEASURE.format(width=width, page=html.escape(page.read_text("utf-8"))), "utf-8")
    shown = browse(tmp_path, outer, "--window-size=1400,900", "--dump-dom")
    found = re.search(r'<output id="measured">([\d ]+)</output>', shown)
    assert found is not None
    return [int(number) for number in found[1].split()]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_the_window_and_shows_something(tmp_path: Path, page: Path, width: int) -> None:
    window, whole, body = measured(tmp_path, page, width)
    assert window == width
    assert max(whole, body) <= window
    picture = tmp_path / "page.png"
    browse(tmp_path, page, f"--window-size={width},1600", f"--screenshot={picture}")
    data = picture.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">I", data[16:20])[0] == width
    assert len(data) > 50_000  # a blank page of this size has a few kB


def test_long_names_do_not_widen_the_page(tmp_path: Path) -> None:
    it = sample_report.long_names()
    page = document.write_report(tmp_path / "results", it.study, it.plan, it.records, it.verdict)
    window, whole, body = measured(tmp_path, page, 320)
    assert max(whole, body) <= window == 320


def test_the_page_prints(tmp_path: Path, page: Path) -> None:
    printed = tmp_path / "report.pdf"
    browse(tmp_path, page, "--no-pdf-header-footer", f"--print-to-pdf={printed}")
    data = printed.read_bytes()
    assert data[:5] == b"%PDF-"
    assert len(data) > 30_000


def test_the_page_loads_nothing_from_elsewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not re.search(r"""(?:src|href)\s*=\s*["']?\s*(?!["']?#)""", text)
    assert not re.search(r"url\((?!#)|@import|https?://", text)
