"""The addresses of the page. Nothing in an address is ever used as a path: names are looked up in lists."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.report.page.document import HTML_FILE, MARKDOWN_FILE
from tiebreak.watch.access import Access, Guard
from tiebreak.watch.event_stream import events
from tiebreak.watch.hub import Hub, Published, WatchedStudy

Handler = Callable[[Request], Awaitable[Response]]

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
EVENTS = "text/event-stream"
MOST_CLIENTS = 500  # event streams at once
INDEX = "index.html"
REPORT = {"": HTML_FILE, HTML_FILE: HTML_FILE, MARKDOWN_FILE: MARKDOWN_FILE}  # address -> file, all there are
# A report is a file of the folder, so it may be a stranger's: nothing in it runs, and it loads nothing.
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)


def web_app(hub: Hub, access: Access) -> Starlette:
    """The application that serves the studies of the hub."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await hub.start()
        try:
            yield
        finally:
            await hub.stop()

    app = Starlette(
        routes=[Route(address, handler) for address, handler in Handlers(hub).routes().items()],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={HTTPException: _refuse},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


class Handlers:
    """What each address answers."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._static = {
            path.name: (path.read_bytes(), TYPES[path.suffix]) for path in PAGE.iterdir() if path.suffix in TYPES
        }

    def routes(self) -> dict[str, Handler]:
        """The handler of every address."""
        return {
            "/": self.index,
            "/study/{id}": self.index,
            "/study/{id}/report/": self.report,
            "/study/{id}/report/{name}": self.report,
            "/static/{name}": self.file,
            "/api/studies": self.studies,
            "/api/study/{id}": self.study,
            "/api/study/{id}/events": self.events,
            "/api/events": self.events,
        }

    async def index(self, request: Request) -> Response:
        """The page, of the list or of one study: its script asks for the content."""
        if "id" in request.path_params:
            self._study_of(request)
        return self._file(INDEX)

    async def file(self, request: Request) -> Response:
        """A file of the page."""
        return self._file(request.path_params["name"])

    async def report(self, request: Request) -> Response:
        """The report of a study that has ended."""
        study, name = self._study_of(request), REPORT.get(request.path_params.get("name", ""))
        if name is None or study.folder.snapshot["report"] is None:
            raise HTTPException(404, "no such report")
        try:
            content = files.read_bytes(files.inside(study.folder.path, name))
        except TiebreakError:
            raise HTTPException(404, "no such report") from None
        kind = TYPES[Path(name).suffix]
        return Response(content, media_type=kind, headers={"content-security-policy": REPORT_POLICY})

    async def studies(self, _: Request) -> Response:
        """The list of studies."""
        return _json(await self._hub.newest_list())

    async def study(self, request: Request) -> Response:
        """The snapshot of a study."""
        return _json(await self._hub.newest(self._study_of(request)))

    async def events(self, request: Request) -> Response:
        """The stream of snapshots, of a study or of the list."""
        found = self._study_of(request) if "id" in request.path_params else None
        if self._hub.clients >= MOST_CLIENTS:
            raise HTTPException(503, f"{MOST_CLIENTS} pages are open already")
        if request.method == "HEAD":
            return Response(media_type=EVENTS)
        return _EventResponse(events(self._hub, found, request.headers.get("last-event-id", "")))

    def _study_of(self, request: Request) -> WatchedStudy:
        found = self._hub.studies.get(request.path_params["id"])
        if found is None:
            raise HTTPException(404, "no such study")
        return found

    def _file(self, name: str) -> Response:
        if name not in self._static:
            raise HTTPException(404, "no such file")
        content, kind = self._static[name]
        return Response(content, media_type=kind)


class _EventResponse(StreamingResponse):
    """Events until the client goes away: then the stream is closed at once, so that nothing is read for it."""

    def __init__(self, stream: AsyncGenerator[bytes, None]) -> None:
        super().__init__(stream, media_type=EVENTS)
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._stream.aclose()


def _json(published: Published) -> Response:
    return Response(published.body, media_type="application/json")


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse(f"{error.detail}\n", error.status_code)
