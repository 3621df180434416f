from __future__ import annotations

import hashlib
import resource
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tiebreak.data import fetch as fetching
from tiebreak.data.fetch import cache_dir, fetch, find_source, verify
from tiebreak.data.sources import SOURCES, RemoteFile, Source
from tiebreak.errors import TiebreakError
from tiebreak.files import replacing

BODY = bytes(range(256)) * 1000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TIEBREAK_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path / "cache"


@dataclass
class Server:
    """A real server on this machine; `requests` are the paths that were asked for."""

    address: str
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append(self.path)
            if self.path == "/absent":
                self.send_error(404)
                return
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("Location", "/toy.npz")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY[:5000] if self.path == "/truncated" else BODY)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        state = Server(address=f"http://127.0.0.1:{httpd.server_address[1]}")
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        yield state
        httpd.shutdown()
        thread.join()


def source(address: str, content: bytes = BODY) -> Source:
    checksum = f"md5:{hashlib.md5(content, usedforsecurity=False).hexdigest()}"
    file = RemoteFile(filename="toy.npz", address=address, checksum=checksum)
    return Source(name="toy", files=(file,), licence="none", citation="none")


def refusal(toy: Source) -> str:
    """The one line that `fetch` ends with, after checking that it left nothing behind."""
    with pytest.raises(TiebreakError) as caught:
        fetch(toy)
    folder = cache_dir() / toy.name
    assert not folder.is_dir() or not list(folder.iterdir())
    assert "\n" not in str(caught.value)
    return str(caught.value)


@dataclass
class Bar:
    total: int = 0
    seen: int = 0
    closed: bool = False

    def update(self, n: int) -> None:
        self.seen += n

    def reset(self) -> None:
        self.seen = 0

    def close(self) -> None:
        self.closed = True


def test_fetch_stores_the_file_once(server: Server, cache: Path) -> None:
    toy, bar = source(f"{server.address}/toy.npz"), Bar()
    assert fetch(toy, bar) == cache / "toy"
    assert (cache / "toy" / "toy.npz").read_bytes() == BODY
    assert [path.name for path in (cache / "toy").iterdir()] == ["toy.npz"]
    assert (bar.total, bar.seen, bar.closed) == (len(BODY), len(BODY), True)
    assert fetch(toy) == cache / "toy"
    assert server.requests == ["/toy.npz"]


def test_fetch_of_several_files_shows_each(server: Server, cache: Path) -> None:
    (file,) = source(f"{server.address}/toy.npz").files
    second = replace(file, filename="two.npz", address=f"{server.address}/two.npz")
    toy, bar = Source(name="toy", files=(file, second), licence="none", citation="none"), Bar()
    assert sorted(path.name for path in fetch(toy, bar).iterdir()) == ["toy.npz", "two.npz"]
    assert (bar.total, bar.seen) == (len(BODY), len(BODY))
    assert server.requests == ["/toy.npz", "/two.npz"]


def test_fetch_follows_a_redirection(server: Server) -> None:
    assert (fetch(source(f"{server.address}/moved")) / "toy.npz").read_bytes() == BODY
    assert server.requests == ["/moved", "/toy.npz"]


def test_fetch_replaces_a_damaged_file(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = source(f"{server.address}/toy.npz")
    monkeypatch.setattr(fetching, "SOURCES", {**SOURCES, "toy": toy})
    path = fetch(toy) / "toy.npz"
    path.write_bytes(BODY[:-1])
    with pytest.raises(TiebreakError, match=r"damaged download.*tiebreak data fetch toy"):
        verify("toy")
    fetch(toy)
    assert verify("toy")["toy.npz"].official
    assert path.read_bytes() == BODY


def test_fetch_refuses_another_file(server: Server) -> None:
    line = refusal(source(f"{server.address}/toy.npz", content=b"the published bytes"))
    assert "not the published file" in line
    assert hashlib.sha256(BODY).hexdigest() in line


def test_fetch_keeps_a_good_file_when_a_new_download_fails(server: Server, cache: Path) -> None:
    fetch(source(f"{server.address}/toy.npz"))
    with pytest.raises(TiebreakError, match="not the published file"):
        fetch(source(f"{server.address}/toy.npz", content=b"a newer version"))
    assert [path.read_bytes() for path in (cache / "toy").iterdir()] == [BODY]


def test_fetch_names_the_answer_of_the_server(server: Server) -> None:
    assert "answered 404 Not Found" in refusal(source(f"{server.address}/absent"))


def test_fetch_notices_a_truncated_body(server: Server) -> None:
    assert "broke off" in refusal(source(f"{server.address}/truncated"))


def test_fetch_without_a_connection() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "no connection" in refusal(source(f"http://127.0.0.1:{port}/toy.npz"))


def test_fetch_without_room(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(BODY) // 2, limits[1]))
    try:
        line = refusal(source(f"{server.address}/toy.npz"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "cannot be written: File too large" in line
    assert "TIEBREAK_CACHE" in line


def test_fetch_into_an_impossible_folder(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(TiebreakError, match="cannot be written"):
        fetch(source(f"{server.address}/toy.npz"))


def test_fetch_of_embedded_data_or_without_an_address() -> None:
    with pytest.raises(TiebreakError, match="needs no download"):
        fetch(find_source("mnist5k"))
    assert "cannot be fetched: there is no public address" in refusal(source(""))


def test_replacing_leaves_the_old_file_when_the_block_fails(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as part:  # noqa: PT012
        part.write_text("half")
        raise KeyboardInterrupt
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("file", "old")]
