"""The server: one port, one event loop, until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn

from tiebreak.errors import TiebreakError
from tiebreak.watch.access import Access
from tiebreak.watch.hub import Hub
from tiebreak.watch.web_app import web_app

HOST = "127.0.0.1"
WAITING = 128  # connections that wait to be accepted; asyncio tries so many at once, also where there is no room
GRACE = 2  # seconds that open requests have at the end


def open_port(host: str, port: int) -> socket.socket:
    """A socket that listens; one line where the port is taken or the address is not of this machine."""
    try:
        if not host:  # the system takes it for every address
            raise UnicodeError
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen(WAITING)
        except BaseException:
            found.close()
            raise
    except OSError as error:
        where = f"--host {host} --port {port}"
        if error.errno == errno.EADDRINUSE:
            advice = f"port {port} is in use, perhaps by another `tiebreak watch`; give --port 0 for any free one"
            raise TiebreakError(f"{where}: {advice}") from None
        if error.errno in (errno.EACCES, errno.EPERM):
            raise TiebreakError(f"{where}: you may not use this port; give --port 0 for any free one") from None
        raise TiebreakError(f"{where}: {error.strerror or error}; give an address of this machine") from None
    except (UnicodeError, OverflowError):
        raise TiebreakError(f"--host {host} --port {port}: not an address; give --host 127.0.0.1") from None
    return found


def access_of(host: str, listening: socket.socket) -> Access:
    """Who may read what is served there."""
    bound, port = listening.getsockname()[:2]
    return Access.of(host, bound.partition("%")[0], port)


def link(access: Access, port: int) -> str:
    """The address to open, with the token if there is one."""
    host = access.host if access.host not in ("0.0.0.0", "::") else socket.gethostname()
    host = f"[{host}]" if ":" in host else host
    return f"http://{host}:{port}/" + (f"?token={access.token}" if access.token else "")


class Server(uvicorn.Server):
    """Ends its event streams before it waits for requests to end."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._hub, self._full = hub, False

    def stop(self) -> None:
        """End it; may be called from another thread."""
        self._hub.end_streams_soon()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: as always, after the streams were told."""
        self._hub.end_streams()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections; more of them than the system allows are one line, not thousands."""
        asyncio.get_running_loop().set_exception_handler(self.report_error)
        await super().startup(sockets)

    def report_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error that no request has. asyncio tries again by itself where it found no room for a connection."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif not self._full:
            self._full = True
            print("tiebreak watch: too many open connections (see ulimit -n): some pages wait", file=sys.stderr)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the requests that are open. A client that does not read its answer is cut off, which is no error."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # the sockets are closed here


def serve(hub: Hub, access: Access, listening: socket.socket, begin: Callable[[Server], object]) -> None:
    """Serve until interrupted. `begin` is called with the server before it starts."""
    config = uvicorn.Config(
        web_app(hub, access),
        log_config=None,
        log_level="error",  # a client that sends nonsense is no news for the terminal of a run
        access_log=False,
        backlog=WAITING,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=GRACE,
    )
    server = Server(config, hub)
    begin(server)
    with suppress(KeyboardInterrupt):  # this is how one ends it
        server.run(sockets=[listening])
