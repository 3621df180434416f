"""Who may read: this machine, or whoever has the token. Reading only, and headers that let a page run nothing else."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_PATH = 2_000  # characters of an address
MOST_QUERY = 500  # bytes of its query
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, kw_only=True)
class Access:
    """The rule of a server: on this machine a name of it in the Host header, elsewhere the token."""

    host: str = "127.0.0.1"
    token: str | None = None
    cookie: str = "tiebreak-watch"

    @classmethod
    def of(cls, host: str, bound: str, port: int) -> Access:
        """The rule for a host that was bound to an address: a new random token unless only this machine reaches it."""
        token = None if ip_address(bound).is_loopback else secrets.token_urlsafe(24)
        return cls(host=host, token=token, cookie=f"tiebreak-watch-{port}")

    def accepts_host(self, header: str) -> bool:
        """Whether a Host header names this machine: a page of another site that points its name here is refused."""
        if self.token is not None:
            return True
        name, colon, port = header.lower().rpartition(":")
        name = name if colon and port.isdecimal() and not name.endswith(":") else header.lower()
        return name.strip("[]") in (*LOCAL_NAMES, self.host.lower())  # browsers write names in small letters

    def in_query(self, query: bytes) -> bool:
        """Whether the query of an address holds the token."""
        given = parse_qs(query.decode("latin-1")).get("token", [""]) if len(query) < MOST_QUERY else [""]
        return self._matches(given[0])

    def in_cookie(self, header: str) -> bool:
        """Whether the cookies of a request hold the token."""
        try:
            found = SimpleCookie(header).get(self.cookie)
        except CookieError:
            return False
        return found is not None and self._matches(found.value)

    def _matches(self, given: str) -> bool:
        return self.token is not None and hmac.compare_digest(given.encode(), self.token.encode())


class Guard:
    """Refuses what the rule does not allow, before any handler sees it, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        access, headers = self._access, Headers(scope=scope)
        new = access.token is not None and access.in_query(scope["query_string"])

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    out[name] = value
                out.setdefault("content-security-policy", POLICY)
                out.setdefault("cache-control", "no-store")
                if new:
                    out.append("set-cookie", f"{access.cookie}={access.token}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        refusal = self._refusal(scope, headers, new)
        await (self._app if refusal is None else refusal)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Headers, new: bool) -> PlainTextResponse | None:
        access = self._access
        if not access.accepts_host(headers.get("host", "")):
            return PlainTextResponse(f"open this page as http://{access.host} and its port, not otherwise\n", 421)
        if access.token is not None and not new and not access.in_cookie(headers.get("cookie", "")):
            return PlainTextResponse("open the link with the token that `tiebreak watch` printed\n", 401)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("this page is for reading only\n", 405, {"allow": "GET, HEAD"})
        if len(scope["path"]) > MOST_PATH:
            return PlainTextResponse("no such page\n", 404)
        return None
