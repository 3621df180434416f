"""Who may read: the Host header on this machine, the token elsewhere, GET only, and the headers of every answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from support.web_client import LOCAL, WebClient, serving
from tiebreak.watch.access import Access
from tiebreak.watch.hub import Hub
from tiebreak.watch.web_app import web_app

OPEN = Access.of("0.0.0.0", "0.0.0.0", 8088)


@pytest.fixture
def local() -> Iterator[WebClient]:
    with serving(web_app(Hub([]), Access())) as found:
        yield found


@pytest.fixture
def remote() -> Iterator[WebClient]:
    with serving(web_app(Hub([]), OPEN)) as found:
        yield found


@pytest.mark.parametrize("host", ["127.0.0.1:8088", "localhost:9000", "LOCALHOST", "[::1]:8088", "127.0.0.1"])
def test_names_of_this_machine_are_accepted(local: WebClient, host: str) -> None:
    assert local.get("/api/studies", {"host": host}).status == 200


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example:8088"}, {"host": "127.0.0.1.evil.example"}, {"host": "localhost:80@evil"}, {}]
)
def test_a_name_that_was_pointed_here_is_refused(local: WebClient, headers: Mapping[str, str]) -> None:
    answer = local.get("/api/studies", headers)
    assert answer.status == 421
    assert b"studies" not in answer.body


def test_the_name_that_was_given_is_accepted_as_browsers_write_it() -> None:
    assert all(Access(host="MyBox").accepts_host(header) for header in ("mybox:8088", "mybox", "MyBox:8088"))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_reading_is_possible(local: WebClient, method: str) -> None:
    assert local.get("/api/studies", method=method).status == 405


def test_a_head_request_is_answered_without_a_body(local: WebClient) -> None:
    answer = local.get("/", method="HEAD")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")


@pytest.mark.parametrize("address", ["/", "/static/page.js", "/api/studies", "/nothing"])
def test_every_answer_has_the_headers(local: WebClient, address: str) -> None:
    headers = local.get(address).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("/", {}),
        ("/api/studies", LOCAL),
        ("/static/page.js", {}),
        ("/api/events", {"cookie": f"{OPEN.cookie}=wrong"}),
        ("/?token=", {}),
        ("/?token=wrong", {}),
        ("/?token=é", {}),
        ("/?token=" + "x" * 1_000, {}),
        ("/?" + "x=1&" * 50, {}),
        ("/nothing", {"cookie": "\x00;;;=,"}),
    ],
)
def test_nothing_is_served_without_the_token(remote: WebClient, address: str, headers: Mapping[str, str]) -> None:
    answer = remote.get(address, {"host": "node7", **headers})
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


def test_the_token_of_the_link_becomes_a_cookie_that_scripts_cannot_read(remote: WebClient) -> None:
    first = remote.get(f"/?token={OPEN.token}", {"host": "node7:8088"})
    cookie, *flags = first.headers["set-cookie"].split("; ")
    assert (first.status, set(flags)) == (200, {"Path=/", "HttpOnly", "SameSite=Strict"})
    assert remote.get("/api/studies", {"host": "node7:8088", "cookie": cookie}).status == 200


def test_a_token_is_new_for_every_server_and_none_is_needed_on_this_machine() -> None:
    assert OPEN.token is not None
    assert len(OPEN.token) >= 32
    assert Access.of("0.0.0.0", "0.0.0.0", 8088).token != OPEN.token
    assert all(Access.of("localhost", bound, 1).token is None for bound in ("127.0.0.1", "127.0.0.2", "::1"))
    assert Access.of("localhost", "10.0.0.7", 1).token is not None  # whatever its name
    assert Access.of("", "::", 1).cookie != Access.of("", "::", 2).cookie  # browsers do not separate ports
