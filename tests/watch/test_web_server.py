"""The port: taken, forbidden or free, and the link to it."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from tiebreak.errors import TiebreakError
from tiebreak.watch import web_server
from tiebreak.watch.access import Access
from tiebreak.watch.hub import Hub
from tiebreak.watch.web_server import Server, access_of, link, open_port, serve


def test_a_port_in_use_is_one_line_that_names_the_way_out() -> None:
    with open_port("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(TiebreakError, match=rf"{port} is in use.*--port 0"):
            open_port("127.0.0.1", port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "x" * 300, ""])
def test_an_address_that_is_not_of_this_machine_is_refused(host: str) -> None:
    with pytest.raises(TiebreakError, match=f"--host {host}"):
        open_port(host, 0)


def test_the_rule_follows_from_the_address_that_is_bound() -> None:
    with open_port("127.1", 0) as listening:
        access = access_of("127.1", listening)
    assert (access.token, access.accepts_host("127.1:80")) == (None, True)


def test_the_link_holds_the_token_where_there_is_one() -> None:
    assert link(Access(), 80) == "http://127.0.0.1:80/"
    assert link(Access(host="::1"), 80) == "http://[::1]:80/"
    remote = Access.of("0.0.0.0", "0.0.0.0", 80)
    assert link(remote, 80) == f"http://{socket.gethostname()}:80/?token={remote.token}"


def test_too_many_connections_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(uvicorn.Config("none"), Hub([]))
    with asyncio.Runner() as runner:
        for _ in range(3):
            server.report_error(runner.get_loop(), {"exception": OSError(errno.EMFILE, "Too many open files")})
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "ulimit -n" in told


def test_clients_that_send_nonsense_or_never_read_are_no_news_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sending = threading.Event()

    async def flood(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            sending.set()
            while True:
                await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})

    monkeypatch.setattr(web_server, "web_app", lambda *_: flood)
    monkeypatch.setattr(web_server, "GRACE", 0.1)
    servers: list[Server] = []
    with open_port("127.0.0.1", 0) as listening:
        address = listening.getsockname()
        thread = threading.Thread(target=serve, args=(Hub([]), Access(), listening, servers.append))
        thread.start()
        with socket.create_connection(address) as nonsense, socket.create_connection(address) as deaf:
            nonsense.sendall(b"nonsense\r\n\r\n")
            assert nonsense.recv(100).startswith(b"HTTP/1.1 400")
            deaf.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert sending.wait(60)
            servers[0].stop()
            thread.join(60)
    assert not thread.is_alive()
    assert capsys.readouterr().err == ""
