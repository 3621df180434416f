"""The addresses: what they answer, what they refuse, and that nothing in them is a path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import watched
from support.web_client import WebClient, serving
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
