"""The command `watch`. Everything heavy is imported inside it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tiebreak.cli.output import print_line
from tiebreak.errors import TiebreakError

PORT = 8088
PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, metavar="N", help="Port of the page; 0: any that is free.")
]


def require_web(what: str) -> None:
    """One line that names the extra, where the libraries of the web server are not installed."""
    from tiebreak.exchange.extras import require

    for module in ("starlette", "uvicorn"):
        require(module, "web", what)


def watch(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Results folders, or folders that hold results folders.")
    ],
    port: PortOption = PORT,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Where to listen. Any but this machine's own needs the token in the printed link."
        ),
    ] = "127.0.0.1",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Watch studies in a browser while they run: progress, verdict so far, learning curves. Reads only."""
    from tiebreak.system import open_in_browser

    require_web("tiebreak watch")
    from tiebreak.exchange.scores_folder import is_scores_folder
    from tiebreak.watch.hub import Hub
    from tiebreak.watch.web_server import access_of, link, open_port, serve

    for folder in folders:
        if not folder.is_dir():
            what = "a file, not a folder" if folder.exists() else "no such folder"
            raise TiebreakError(f"{folder}: {what}; give the --out folder of `tiebreak run`, or one that holds some")
        if is_scores_folder(folder) and not any(folder.glob("*/plan.json")):
            raise TiebreakError(
                f"{folder}: an --out folder of `tiebreak compare`: it holds scores but no runs to watch; "
                f"`tiebreak open {folder}` shows its report"
            )
    with open_port(host, port) as listening:
        access = access_of(host, listening)
        address = link(access, listening.getsockname()[1])
        print_line(f"watch at {address}  (Ctrl-C ends it)")
        sys.stdout.flush()  # also where it is read by a program
        serve(Hub(folders), access, listening, lambda _: open_in_browser(address) if open_page else None)


@contextmanager
def beside(folder: Path, *, watch: bool, port: int | None) -> Iterator[None]:
    """`tiebreak run --watch`: the page of a folder as long as the block runs. Without it, nothing."""
    if not watch:
        if port is not None:
            raise TiebreakError(f"--port {port}: is the port of --watch; give both")
        yield
        return
    require_web("tiebreak run --watch")
    from tiebreak.watch.beside import page_beside

    with page_beside(folder, PORT if port is None else port) as address:
        print_line(f"watch at {address}  (as long as the study runs)")
        sys.stdout.flush()
        yield
