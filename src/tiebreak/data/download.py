"""One download, with limits of size, speed and time: a server may send too much, too slowly, or for ever.

The transfer runs in a thread of its own: a read from a socket that gets a byte now and then does not return, and only
another thread can give up on it.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Protocol

from tiebreak.errors import TiebreakError
from tiebreak.text import one_line

TIMEOUT_SECONDS = 30  # without a byte
WINDOW_SECONDS, WINDOW_BYTES = 60.0, 64 << 10  # in each such time at least so many bytes must come
LONGEST_SECONDS = 6 * 3600.0
CHUNK_BYTES = 1 << 16
POLL_SECONDS = 0.1


class Progress(Protocol):
    """A progress bar: `total` is set to the number of bytes, `update` gets bytes since the last call."""

    total: int

    def update(self, n: int, /) -> object:
        """`n` more bytes came."""

    def reset(self) -> object:
        """Back to no bytes."""

    def close(self) -> object:
        """The download is complete."""


def download(address: str, target: Path, limit: int, progress: Progress | None = None) -> None:
    """Write what is at the address to `target`: at most `limit` bytes. One line where the server is to blame.

    OSError: the file cannot be written.
    """
    import requests

    transfer = _Transfer(address, target, limit)
    transfer.start()
    try:
        _watch(transfer, progress)
    finally:
        transfer.stopped.set()
    try:
        if transfer.error is not None:
            raise transfer.error
    except requests.RequestException as error:
        raise TiebreakError(f"{address}: {_reason(error)}") from None
    except ValueError as error:  # what a server answered makes no sense
        raise TiebreakError(f"{address}: {one_line(error, 200)}") from None
    if progress is not None:
        progress.close()


class _Transfer(threading.Thread):
    """Receives a file; the owner looks at `received` and sets `stopped`."""

    def __init__(self, address: str, target: Path, limit: int) -> None:
        super().__init__(daemon=True)  # one that is stuck does not keep the program alive
        self.address, self.target, self.limit = address, target, limit
        self.received, self.total = 0, 0
        self.error: Exception | None = None
        self.stopped = threading.Event()

    def run(self) -> None:
        """Receive; an error is kept for the owner."""
        try:
            self._receive()
        except Exception as error:
            self.error = error

    def _receive(self) -> None:
        import requests

        plain = {"Accept-Encoding": "identity"}
        with requests.get(self.address, stream=True, timeout=TIMEOUT_SECONDS, headers=plain) as answer:
            answer.raise_for_status()
            self.total = _claimed_bytes(answer.headers.get("Content-Length", "0"))
            self._check(self.total)
            with self.target.open("wb") as file:
                for piece in answer.iter_content(CHUNK_BYTES):
                    if self.stopped.is_set():
                        return
                    self._check(self.received + len(piece))
                    file.write(piece)
                    self.received += len(piece)

    def _check(self, size: int) -> None:
        if size > self.limit:
            raise ValueError(f"the server sends more than {self.limit:,} bytes, which the published file has not")


def _claimed_bytes(header: str) -> int:
    if not (header.isascii() and header.isdecimal() and len(header) < 19):
        raise ValueError(f"the server's answer has the Content-Length {header[:40]!r}")
    return int(header)


def _watch(transfer: _Transfer, progress: Progress | None) -> None:
    """Wait for the end of a transfer, unless it is too slow."""
    started = window = time.monotonic()
    shown = before = 0
    while True:
        transfer.join(POLL_SECONDS)
        ended, received = not transfer.is_alive(), transfer.received
        if progress is not None and received > shown:
            progress.total = transfer.total
            progress.update(received - shown)
            shown = received
        if ended:
            return
        now = time.monotonic()
        if now - started > LONGEST_SECONDS:
            raise TiebreakError(f"{transfer.address}: not complete after {LONGEST_SECONDS / 3600:g} hours")
        if now - window > WINDOW_SECONDS:
            if received - before < WINDOW_BYTES:
                raise TiebreakError(
                    f"{transfer.address}: {received - before:,} bytes in {WINDOW_SECONDS:g} s: too slow to end"
                )
            window, before = now, received


def _reason(error: Exception) -> str:
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT_SECONDS} s"
    if isinstance(error, requests.exceptions.SSLError):
        return "the secure connection failed"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke off before the end"
    return f"no connection ({type(error).__name__})"
