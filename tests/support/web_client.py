"""Requests to a web application in this process, without a port: an address arrives exactly as it was sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette

LOCAL = {"host": "127.0.0.1:8088"}


@dataclass(frozen=True)
class Answer:
    """What came back. `parts` are the pieces of the body as they were sent."""

    status: int
    headers: Mapping[str, str]
    parts: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class WebClient:
    """Sends requests to an application that has started."""

    def __init__(self, app: Starlette, runner: asyncio.Runner) -> None:
        self._app, self._runner = app, runner

    def get(
        self, address: str, headers: Mapping[str, str] = LOCAL, *, method: str = "GET", parts: int | None = None
    ) -> Answer:
        """One request. With `parts`, the client goes away when it has that many parts of the body."""
        return self._runner.run(self._get(address, headers, method, parts))

    async def _get(self, address: str, headers: Mapping[str, str], method: str, parts: int | None) -> Answer:
        path, _, query = address.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path, "latin-1"),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8088),
        }
        started: dict[str, Any] = {}
        body: list[bytes] = []
        enough, asked = asyncio.Event(), False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if asked:
                await enough.wait()
                return {"type": "http.disconnect"}
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            elif message.get("body"):
                body.append(message["body"])
                if parts is not None and len(body) >= parts:
                    enough.set()
                    raise OSError("the client went away")

        try:
            await self._app(scope, receive, send)
        except BaseException:
            if not enough.is_set():
                raise
        found = {name.decode(): value.decode("latin-1") for name, value in started["headers"]}
        return Answer(started["status"], found, tuple(body))


@contextmanager
def serving(app: Starlette) -> Iterator[WebClient]:
    """The application at work."""
    with asyncio.Runner() as runner:
        lifespan = app.router.lifespan_context(app)
        runner.run(lifespan.__aenter__())
        try:
            yield WebClient(app, runner)
        finally:
            runner.run(lifespan.__aexit__(None, None, None))
