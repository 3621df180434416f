"""The addresses: what they answer, what they refuse, and that nothing in them is a path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import watched
from support.web_client import WebClient, serving
from tiebreak.results.manifest import write_files
from tiebreak.watch import web_app as app_module
from tiebreak.watch.access import Access
from tiebreak.watch.hub import Hub
from tiebreak.watch.snapshot import SUMMARY
from tiebreak.watch.web_app import web_app


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study with two of three seeds."""
    watched.make_folder(tmp_path / "runs" / "one", ended=2)
    return tmp_path / "runs" / "one"


@pytest.fixture
def client(study: Path) -> Iterator[WebClient]:
    with serving(web_app(Hub([study]), Access())) as found:
        yield found


def identity(client: WebClient) -> str:
    return str(client.get("/api/studies").json["studies"][0]["id"])


def test_a_study_is_listed_and_shown(client: WebClient) -> None:
    snapshot = client.get(f"/api/study/{identity(client)}").json
    assert (snapshot["state"], snapshot["final"], snapshot["report"]) == ("interrupted", False, None)
    assert (snapshot["progress"]["runs_done"], snapshot["progress"]["runs"]) == (8, 12)
    listed = client.get("/api/studies").json
    assert listed == {"studies": [{key: snapshot[key] for key in SUMMARY}], "single": True}


@pytest.mark.parametrize("address", ["/", "/static/page.js", "/static/page.css"])
def test_the_page_comes_from_the_package(client: WebClient, address: str) -> None:
    answer = client.get(address)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/")
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_page_of_a_study(client: WebClient) -> None:
    assert client.get(f"/study/{identity(client)}").body == client.get("/").body


@pytest.mark.parametrize(
    "address",
    [
        "/static/../web_app.py",
        "/static/..%2fweb_app.py",
        "/static/%2e%2e%2f%2e%2e%2fapi.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/page.js%00",
        "/static/",
        "/study/nothing",
        "/study/..%2f..%2fetc",
        "/study/ID/report/",
        "/study/ID/report/..%2fplan.json",
        "/study/ID/report/plan.json",
        "/study/ID/plan.json",
        "/api/study/nothing",
        "/api/study/nothing/events",
        "/api/study/" + "a" * 5_000,
        "/docs",
        "/openapi.json",
    ],
)
def test_other_addresses_are_not_found(client: WebClient, address: str) -> None:
    assert client.get(address.replace("ID", identity(client))).status == 404


def test_there_may_be_many_pages_but_not_any_number(client: WebClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/api/events", method="HEAD").body == b""
    monkeypatch.setattr(app_module, "MOST_CLIENTS", 0)
    assert client.get("/api/events").status == 503


def test_the_finished_report_is_served_so_that_nothing_in_it_runs(tmp_path: Path) -> None:
    watched.make_folder(tmp_path / "one", ended=3)
    write_files(tmp_path / "one", {"report.html": "<h1>the report</h1>", "report.md": "# the report"})
    with serving(web_app(Hub([tmp_path / "one"]), Access())) as client:
        address = client.get(f"/api/study/{identity(client)}").json["report"]
        page = client.get(address)
        assert page.body == b"<h1>the report</h1>"
        policy = page.headers["content-security-policy"]
        assert policy.startswith("sandbox; default-src 'none';")
        assert "script" not in policy
        assert client.get(f"{address}report.md").headers["content-type"].startswith("text/plain")
        (tmp_path / "one" / "report.html").unlink()
        (tmp_path / "one" / "report.html").symlink_to("/etc/passwd")
        assert client.get(address).status == 404
