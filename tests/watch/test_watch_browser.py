"""The page of `tiebreak watch` in headless Chromium: it follows a folder, by keyboard too, and nothing breaks it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from support import hand_made, watched
from support.chromium import CHROMIUM, Browser, browser
from tiebreak.report import formatting
from tiebreak.results.live_progress import LiveProgress, MachineLoad, write_live
from tiebreak.results.store import Store
from tiebreak.results.stored_study import load_study
from tiebreak.study import parsing
from tiebreak.watch.access import Access
from tiebreak.watch.hub import Hub
from tiebreak.watch.watched_folder import study_id
from tiebreak.watch.web_server import Server, open_port, serve

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH: `make browser-test` installs it"),
]

THREE = {
    "arms": [
        {"name": "pool", "design": "cnn-pool"},
        {"name": "strided", "design": "cnn-strided"},
        {"name": "unpadded", "design": "cnn-pool-unpadded"},
    ],
    "comparisons": [{"a": "pool", "b": "strided", "primary": True}, {"a": "unpadded", "b": "strided"}],
    "question": "At equal parameters, does max pooling classify better than stride 2?",
}
ATTACK = "</script><script>console.log('xss')</script><img src=x onerror=console.log('xss')>\u202eevil"
# Every text on the page with less contrast than 4.5 to what lies behind it.
PALE = """(() => {
  const parts = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = parts(getComputedStyle(at).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !node.checkVisibility()) continue;
    const style = getComputedStyle(node), text = node.namespaceURI.endsWith("svg") ? style.fill : style.color;
    const [a, b] = [light(parts(text)), light(behind(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`${node.className.baseVal ?? node.className}: ${node.textContent}`);
  }
  return found;
})()"""


@contextmanager
def served(*places: Path, port: int = 0) -> Iterator[str]:
    """The real server in a thread of this process; its address. A folder that is empty is a study to come."""
    empty = [place for place in places if not any(place.iterdir())]
    hub = Hub([place for place in places if place not in empty], studies=empty)
    servers: list[Server] = []
    with open_port("127.0.0.1", port) as listening:
        port = listening.getsockname()[1]
        work = threading.Thread(target=serve, args=(hub, Access(), listening, servers.append))
        work.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            servers[0].stop()
            work.join()


@pytest.fixture(scope="module")
def open_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as it:
        yield it


@pytest.fixture
def page(open_browser: Browser) -> Browser:
    open_browser.go("about:blank")  # the page of another test may still look for its server
    open_browser.wait("location.href === 'about:blank'")
    open_browser.size(1280)
    open_browser.complaints.clear()
    return open_browser


def running(folder: Path, **changes: object) -> None:
    """A study that looks as if it ran: some seeds ended, one run diverged, a process is at work."""
    plan = watched.make_folder(folder, ended=5, seeds=8, epochs=12, **(THREE | changes))
    left = [run for run in plan.runs.values() if run.seed == 5]
    watched.end_runs(folder, left[:1], "diverged", "loss is not finite")
    watched.end_runs(folder, left[1:2], "failed", "RuntimeError: mat1 and mat2 shapes cannot be multiplied")
    with closing(Store.create(folder)) as store, store.transaction():
        for run in left[2:]:
            for epoch in range(1, 7):
                watched.add_epoch(store, run, epoch, 0.7 + 0.01 * epoch)
    nodes = (
        MachineLoad(name="node-1", cores=16, cores_used=14, gpus=1, jobs=14),
        MachineLoad(name="node-2", cores=16, alive=False),
    )
    live = LiveProgress.here(folder)
    write_live(folder, live.model_copy(update={"seconds_left": 140.0, "rate": 5234.0, "machines": nodes}))


def turn_away(page: Browser, *, hidden: bool) -> None:
    """The reader looks elsewhere, or comes back a minute later."""
    page.value(f"Object.defineProperty(document, 'hidden', {{ value: {str(hidden).lower()}, configurable: true }})")
    page.value("document.dispatchEvent(new Event('visibilitychange'))")
    page.value("Date.now = ((now) => () => now() + 60_000)(Date.now.bind(Date))")


def show_study(page: Browser, address: str, folder: Path) -> None:
    page.go(f"{address}/study/{study_id(folder)}")
    page.wait("document.querySelector('h1')?.textContent.length > 5")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_list_and_study_fit_and_can_be_read(tmp_path: Path, page: Browser, width: int, dark: bool) -> None:
    running(tmp_path / "one")
    (tmp_path / "two").mkdir()
    watched.make_folder(tmp_path / "three", ended=3)
    page.size(width, dark=dark)
    with served(tmp_path) as address:
        page.go(address)
        page.wait("document.querySelectorAll('.studies > li').length === 2 && document.body.innerText.includes('%')")
        assert "1 running" in page.text()
        links = [name for role, name in page.names() if role == "link"]
        assert len(set(links)) == len(links) == 2  # both hold the same study
        for again in (False, True):
            if again:
                show_study(page, address, tmp_path / "one")
                page.wait("document.querySelectorAll('.chart .curve').length >= 3")
            assert page.value("document.documentElement.scrollWidth") <= width
            assert page.value(PALE) == []
        shown = page.text()
        for words in ("Not final", "--until-decided", "loss is not finite", "diverged", "node-2", "steps/s", "left"):
            assert words in shown
        assert page.value("document.title").startswith(f"{page.value('document.querySelector(`progress`).value')} %")
        page.shoot(tmp_path / "page.png")
        assert (tmp_path / "page.png").stat().st_size > 20_000
    assert page.complaints == []


def test_everything_has_a_name_and_is_reached_by_keyboard(tmp_path: Path, page: Browser) -> None:
    running(tmp_path / "one")
    with served(tmp_path / "one") as address:
        page.go(address)
        page.wait("document.querySelectorAll('.chart .curve').length >= 3")
        named = [(role, name) for role, name in page.names() if role in ("button", "slider", "progressbar", "link")]
        assert {role for role, _ in named} == {"button", "slider", "progressbar"}
        assert all(name for _, name in named)
        assert ("heading", "Learning curves") in page.names()
        reached = set()
        for _ in range(40):
            page.press("Tab")
            reached.add(page.value("document.activeElement.getAttribute('role') ?? document.activeElement.tagName"))
        assert {"slider", "BUTTON", "SUMMARY"} <= reached

        page.value("document.querySelector('.panels .plot').focus()")
        told = "document.activeElement.getAttribute('aria-valuetext')"
        newest = page.value(told)
        page.press("Home")
        assert page.value(told).startswith("epoch 1:")
        page.press("ArrowRight")
        assert page.value(told).startswith("epoch 2:")
        assert "Epoch 2" in page.text()
        page.press("Escape")
        assert page.value(told) == newest

        page.value("document.querySelectorAll('.pick')[1].focus()")
        page.press("Enter")
        page.wait("document.querySelector('.title').textContent.includes('unpadded')")
        page.value("document.querySelector('details summary').focus()")
        page.press("Enter")
        page.wait("document.querySelectorAll('details[open] tbody tr').length === 4")  # 2 to 5 seeds
    assert page.complaints == []


def test_an_update_keeps_focus_scroll_and_selection(tmp_path: Path, page: Browser) -> None:
    running(folder := tmp_path / "one")
    with served(folder) as address:
        page.go(address)
        page.wait("document.querySelectorAll('.legend button').length === 3")
        page.value("document.querySelectorAll('.legend button')[1].click()")
        page.value("document.querySelectorAll('.legend button')[1].focus(); scrollTo(0, 500)")
        page.value("getSelection().selectAllChildren(document.querySelector('h1'))")
        share, before = page.value("document.querySelector('.facts').textContent.split(' ')[0]"), page.text()
        curves = page.value("document.querySelector('.curve').getAttribute('d')")
        kept = "[document.activeElement.textContent, document.activeElement.ariaPressed, scrollY, getSelection() + '']"
        state = page.value(kept)
        assert state == ["strided", "true", 500, THREE["question"]]
        plan = hand_made.plan(load_study(folder))
        turn_away(page, hidden=True)
        watched.end_runs(folder, [run for run in plan.runs.values() if run.seed == 6])
        turn_away(page, hidden=False)
        page.wait(f"!document.querySelector('.facts').textContent.startsWith({share!r})")
        page.wait(f"document.querySelector('.curve').getAttribute('d') !== {curves!r}")
        assert page.text() != before
        assert page.value(kept) == state
    assert page.complaints == []


def test_numbers_are_written_as_in_the_report(tmp_path: Path, page: Browser) -> None:
    watched.make_folder(tmp_path / "one", ended=1)
    values = [
        0.0,
        0.0221,
        -0.0004,
        0.94449,
        163.98,
        -12.345,
        0.00004,
        9.9996,
        3.14159e-5,
        -1.24e-6,
        1e-13,
        0.00012,
        -0.000461,
        9.999e-5,
    ]
    with served(tmp_path / "one") as address:
        page.go(address)
        page.wait("document.querySelector('h1')")
        script = "import('/static/numbers.js').then((all) => %s.map((value) => [all.score(value), all.signed(value)]))"
        written = page.value(script % json.dumps(values))
        script = "import('/static/numbers.js').then(({ moment }) => ['2020-01-02T12:00:00Z', null].map(moment))"
        last_year, never = page.value(script)
    assert written == [
        [formatting.true_minus(formatting.score(value)), formatting.signed_minus(value)] for value in values
    ]
    assert "2020" in last_year  # a time of another day is none without the day
    assert never == ""


def test_texts_of_a_stranger_stay_texts(tmp_path: Path, page: Browser) -> None:
    folder = tmp_path / "<img src=x onerror=console.log(1)>"
    pairs = [{"a": "pool", "b": "strided", "name": ATTACK, "primary": True}, {"a": "unpadded", "b": "strided"}]
    plan = watched.make_folder(folder, ended=3, seeds=4, **(THREE | {"question": ATTACK, "comparisons": pairs}))
    watched.end_runs(folder, [run for run in plan.runs.values() if run.seed == 3][:1], "failed", ATTACK)
    other = tmp_path / ("long" * 40)
    watched.make_folder(other, ended=1, question="word" * 100)
    page.size(390)
    with served(tmp_path) as address:
        page.go(address)
        page.wait("document.body.innerText.includes('onerror')")
        assert page.value("document.documentElement.scrollWidth") <= 390
        show_study(page, address, folder)
        page.wait("document.querySelectorAll('.chart .curve').length")
        assert "<script>console.log('xss')</script>" in page.text()
        assert page.value("document.querySelectorAll('main img, main script, header img, header script').length") == 0
        assert page.value("document.documentElement.scrollWidth") <= 390
    assert page.complaints == []


def test_a_folder_that_vanishes_and_a_server_that_is_gone_for_a_while(tmp_path: Path, page: Browser) -> None:
    running(folder := tmp_path / "one")
    with served(folder) as address:
        page.go(address)
        page.wait("document.body.innerText.includes('Not final')")
        shutil.move(folder, tmp_path / "elsewhere")
        page.wait("document.body.innerText.includes('no such folder any more')")
        assert page.complaints == []
        shutil.move(tmp_path / "elsewhere", folder)
        page.wait("document.body.innerText.includes('Not final')")
    page.wait("document.body.innerText.includes('Connection lost, trying again')")
    with served(folder, port=int(address.rpartition(":")[2])):
        page.wait("!document.body.innerText.includes('Connection lost')")


def test_ten_thousand_runs_take_little_memory(tmp_path: Path, page: Browser) -> None:
    watched.make_folder(tmp_path / "large", ended=2_500, seeds=2_500, epochs=1)
    with served(tmp_path / "large") as address:
        page.go(address)
        page.wait("document.body.innerText.includes('10,000 of 10,000 runs')")
        page.call("HeapProfiler.collectGarbage")
        assert page.value("performance.memory.usedJSHeapSize") < 50e6
    assert page.complaints == []


def test_a_real_study_from_its_first_run_to_its_report(tmp_path: Path, tiny_data_dir: Path, page: Browser) -> None:
    from support.small_study import small_study

    file, out = tmp_path / "study.toml", tmp_path / "runs" / "small"
    file.write_text(parsing.to_toml(small_study(epochs=6, seeds=3)), "utf-8")
    out.mkdir(parents=True)
    arguments = ["run", str(file), "--data-dir", str(tiny_data_dir), "--out", str(out), "--strategy", "loop"]
    with served(out) as address:
        page.go(address)
        page.wait("document.querySelector('.badge')?.textContent === 'nothing trained yet'")
        work = subprocess.Popen([sys.executable, "-m", "tiebreak", *arguments], stdout=subprocess.DEVNULL)
        try:
            page.wait("document.querySelector('.badge')?.textContent === 'running'")
            page.wait("document.querySelector('.curve')")
            page.wait("document.querySelector('.badge').textContent === 'ended'")
            assert work.wait() == 0
            page.wait("document.querySelector('a.report').checkVisibility()")
            page.wait("document.querySelector('iframe').src.endsWith('/report/')")
            assert "Not final" not in page.text()
            page.value("document.querySelector('a.report').click()")
            page.wait("document.body.innerText.includes('What was held equal')")
        finally:
            work.kill()
            work.wait()
    assert page.complaints == []
