"""The report in headless Chromium: it shows something, fits a phone, prints, and loads nothing from elsewhere."""

from __future__ import annotations

import html
import json
import re
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

from support import sample_exhibits, sample_findings, sample_report
from support.chromium import CHROMIUM, OPTIONS
from tiebreak.report.evidence import Evidence
from tiebreak.report.page import document

# A window is never narrower than 500 px, a frame is as narrow as asked for, and its owner may measure it.
MEASURE = """<!doctype html><iframe id="page" style="width:{width}px;height:800px;border:0" srcdoc="{page}"></iframe>
<script>addEventListener("load", () => {{
  const inner = document.getElementById("page").contentDocument, root = inner.documentElement;
  const out = document.createElement("output");
  out.id = "measured";
  out.textContent = [root.clientWidth, root.scrollWidth, inner.body.scrollWidth, root.scrollHeight].join(" ");
  document.body.append(out);
}});</script>"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: `make browser-test` installs it"),
]


def browse(tmp_path: Path, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    it = sample_exhibits.with_exhibits()
    return document.write_report(tmp_path / "results", it.study, it.plan, it.records, it.verdict)


def measured(tmp_path: Path, page: Path, width: int) -> list[int]:
    """Width of the frame, of the page in it and of its body."""
    return _sizes(tmp_path, page, width)[:3]


def _sizes(tmp_path: Path, page: Path, width: int) -> list[int]:
    outer = page.with_name("frame.html")
    outer.write_text(MEASURE.format(width=width, page=html.escape(page.read_text("utf-8"))), "utf-8")
    shown = browse(tmp_path, outer, "--window-size=1400,900", "--dump-dom").stdout
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


def test_details_are_folded_on_a_phone_and_shown_on_a_wide_screen(tmp_path: Path, page: Path) -> None:
    unfolded = page.with_name("open.html")
    unfolded.write_text(
        page.read_text("utf-8").replace('<details class="fold">', '<details class="fold" open>'), "utf-8"
    )
    phone, whole = (_sizes(tmp_path, each, 390)[3] for each in (page, unfolded))
    assert phone < 0.55 * whole
    assert _sizes(tmp_path, page, 1280)[3] == _sizes(tmp_path, unfolded, 1280)[3]


def test_long_names_do_not_widen_the_page(tmp_path: Path) -> None:
    it = sample_report.long_names()
    page = document.write_report(tmp_path / "results", it.study, it.plan, it.records, it.verdict)
    window, whole, body = measured(tmp_path, page, 320)
    assert max(whole, body) <= window == 320


@pytest.mark.parametrize("width", [320, 1280])
def test_texts_heat_maps_and_graphs_do_not_widen_the_page(tmp_path: Path, width: int) -> None:
    it = sample_findings.hostile()
    page = document.write_report(tmp_path / "results", it.study, it.plan, it.records, it.verdict)
    window, whole, body = measured(tmp_path, page, width)
    assert max(whole, body) <= window == width
    assert console_lines(tmp_path, page) == []


def test_the_page_prints_on_several_pages_of_text(tmp_path: Path, page: Path) -> None:
    printed = tmp_path / "report.pdf"
    browse(tmp_path, page, "--no-pdf-header-footer", f"--print-to-pdf={printed}")
    data = printed.read_bytes()
    assert data[:5] == b"%PDF-"
    assert len(re.findall(rb"/Type\s*/Page\b", data)) > 1
    streams = [_inflated(stream) for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL)]
    assert sum(b"BT\n" in stream and b"Tj" in stream for stream in streams) > 1


def _inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return stream


def console_lines(tmp_path: Path, page: Path) -> list[str]:
    """What the page, or the browser about the page, writes to the console."""
    shown = browse(tmp_path, page, "--enable-logging=stderr", "--v=0", "--dump-dom").stderr
    return [line for line in shown.splitlines() if ":CONSOLE" in line]


def test_the_console_stays_empty(tmp_path: Path, page: Path) -> None:
    assert console_lines(tmp_path, page) == []
    wrong = page.with_name("wrong.html")  # the policy would tell of anything that it had to stop
    wrong.write_text(page.read_text("utf-8").replace("<main>", "<main><script>1</script>"), "utf-8")
    assert len(console_lines(tmp_path, wrong)) == 1


XSS = (
    "<script>console.log('xss')</script>",
    "</title></style></script><script>console.log('xss')</script>",
    "<img src=x onerror=console.log('xss')>",
    "<svg onload=console.log('xss')><svg/onload=console.log('xss')>",
    "\" autofocus onfocus=console.log('xss') x=\"",
    "' onmouseover='console.log(1)' style='animation-name:x' onanimationstart='console.log(1)",
    "]]><script>console.log('xss')</script><!--",
    "<iframe srcdoc=\"<script>parent.console.log('xss')</script>\">",
    "&lt;script&gt;console.log('xss')&lt;/script&gt;",
    "{{ 7 * 7 }}{% raw %}<style>@import 'data:text/css,'</style>",
)


def with_exhibits_of(attack: str) -> list[Evidence]:
    """Reports in which every text that a study, its data or its runs bring is the attack."""
    texts = np.full(4, attack)
    found = sample_exhibits.changed(sample_findings.with_findings(), "samples", input=texts, output=texts)
    graph = sample_findings.graph("cnn-pool") | {"class_names": texts}
    return [sample_report.attacked(attack), sample_exhibits.changed(found, "graph", **graph)]


@pytest.mark.parametrize("attack", XSS)
def test_no_text_of_a_study_is_run_even_without_the_policy(tmp_path: Path, attack: str) -> None:
    for number, it in enumerate(with_exhibits_of(attack)):
        page = document.write_report(tmp_path / str(number), it.study, it.plan, it.records, it.verdict)
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8"))
        page.write_text(text, "utf-8")
        assert console_lines(tmp_path, page) == []
    page.write_text(text.replace("<main>", f"<main>{XSS[0]}"), "utf-8")
    assert len(console_lines(tmp_path, page)) == 1  # the test sees what is run


def requests(tmp_path: Path, page: Path) -> list[str]:
    """The addresses that the page itself asks for; the browser's own requests have no origin."""
    log = tmp_path / "net.json"
    browse(tmp_path, page, f"--log-net-log={log}", "--dump-dom")
    events = json.loads(log.read_text("utf-8"))["events"]
    found = [event["params"] for event in events if "initiator" in event.get("params", ())]
    return [item["url"] for item in found if item["initiator"] != "not an origin"]


def test_no_request_leaves_the_page(tmp_path: Path, page: Path) -> None:
    free = page.with_name("free.html")  # what it would ask for if its own policy did not forbid it
    free.write_text(re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text("utf-8")), "utf-8")
    assert requests(tmp_path, free) == []
    asking = page.with_name("asking.html")
    asking.write_text('<!doctype html><img src="http://example.invalid/x.png">', "utf-8")
    assert requests(tmp_path, asking) == ["http://example.invalid/x.png"]


def test_the_page_names_nothing_elsewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not re.search(r"""(?:src|href)\s*=\s*["']?\s*(?!["']?(?:#|data:image/png;base64,))""", text)
    assert not re.search(r"url\((?!#)|@import|https?://", text)
