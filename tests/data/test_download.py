"""Servers that send too much, too slowly, or nonsense: one line each. A real server on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tiebreak.data import download as downloading
from tiebreak.data.download import download
from tiebreak.errors import TiebreakError

Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture(name="serve")
def _serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], str]]:
    monkeypatch.setenv("NO_PROXY", "*")
    servers: list[ThreadingHTTPServer] = []

    def serve(answer: Answer) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with suppress(OSError):  # the client has gone
                    answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/file"

    yield serve
    ended.set()
    for server in servers:
        server.shutdown()
        server.server_close()
    ended.clear()


ended = threading.Event()


def body(handler: BaseHTTPRequestHandler, content: bytes, length: str | None = None) -> None:
    handler.send_response(200)
    if length is not None:
        handler.send_header("Content-Length", length)
    handler.end_headers()
    handler.wfile.write(content)


def refusal(address: str, tmp_path: Path, limit: int = 1000) -> str:
    with pytest.raises(TiebreakError) as caught:
        download(address, tmp_path / "file", limit)
    line = str(caught.value)
    assert line.startswith(address)
    return line


def test_a_file_within_the_limit(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    download(serve(lambda handler: body(handler, b"x" * 1000)), tmp_path / "file", 1000)
    assert (tmp_path / "file").read_bytes() == b"x" * 1000


@pytest.mark.parametrize("length", [None, "5000000", "0" * 30 + "5"])
def test_more_than_the_limit(serve: Callable[[Answer], str], tmp_path: Path, length: str | None) -> None:
    address = serve(lambda handler: body(handler, b"x" * 5_000_000, length))
    assert ("Content-Length" if length and length[0] == "0" else "1,000 bytes") in refusal(address, tmp_path)
    assert not (tmp_path / "file").exists() or (tmp_path / "file").stat().st_size <= 1000


@pytest.mark.parametrize("length", ["abc", "-5", "1e3", "٣"])
def test_a_length_that_is_none(serve: Callable[[Answer], str], tmp_path: Path, length: str) -> None:
    raw = length.encode().decode("latin-1")
    line = refusal(serve(lambda handler: body(handler, b"xxxxx", raw)), tmp_path)
    assert "Content-Length" in line or "no connection" in line


def dribble(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "900")
    handler.end_headers()
    while not ended.wait(0.02):
        handler.wfile.write(b"x")
        handler.wfile.flush()


def dribble_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nX: ")
    while not ended.wait(0.02):
        handler.wfile.write(b"x")
        handler.wfile.flush()


@pytest.mark.parametrize("answer", [dribble, dribble_headers])
def test_a_server_that_dribbles_is_given_up(
    serve: Callable[[Answer], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    monkeypatch.setattr(downloading, "WINDOW_SECONDS", 0.3)
    assert "too slow" in refusal(serve(answer), tmp_path)
    monkeypatch.setattr(downloading, "WINDOW_SECONDS", 60.0)
    monkeypatch.setattr(downloading, "LONGEST_SECONDS", 0.3)
    assert "not complete" in refusal(serve(answer), tmp_path)


def test_the_words_of_the_server(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    address = serve(lambda handler: handler.send_error(404, "gone\x1b[2J" + "x" * 50))
    assert "answered 404 gone" in refusal(address, tmp_path)


def test_a_file_that_cannot_be_written(serve: Callable[[Answer], str], tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        download(serve(lambda handler: body(handler, b"x")), tmp_path / "none" / "file", 1000)
