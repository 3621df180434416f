"""The page beside a run: a process of its own, so that it takes no time from the run, which ends when the run does."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tiebreak.errors import TiebreakError
from tiebreak.system import python

LAST_READING = 5.0  # seconds for the reading of the last state, at most
GOODBYE = 1.5  # seconds in which clients get it
PATIENCE = 10.0  # seconds for the process to end


@contextmanager
def page_beside(folder: Path, port: int) -> Iterator[str]:
    """Serve a folder, which may not exist yet, while the block runs. Gives the link."""
    process = subprocess.Popen(
        [*python("tiebreak.watch.beside"), str(folder.absolute()), str(port)],
        stdin=subprocess.PIPE,  # its end tells the process that the run is over, also when the run was killed
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for the run
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        if not line.startswith("http:"):
            raise TiebreakError(line or f"--watch: the server ended at once (exit code {process.wait(PATIENCE)})")
        yield line
    finally:
        process.stdin.close()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def main() -> None:
    """Serve the folder given until standard input ends."""
    from tiebreak.watch.hub import Hub
    from tiebreak.watch.web_server import HOST, Server, access_of, link, open_port, serve

    hub = Hub([], studies=[Path(sys.argv[1])])

    def end_with_the_run(server: Server) -> None:
        sys.stdin.buffer.read()
        end = time.monotonic() + LAST_READING
        while hub.clients and hub.is_running and time.monotonic() < end:
            time.sleep(0.1)
        if hub.clients:
            time.sleep(GOODBYE)
        server.stop()

    try:
        listening = open_port(HOST, int(sys.argv[2]))
    except TiebreakError as error:
        print(error, flush=True)
        sys.exit(2)
    with listening:
        access = access_of(HOST, listening)
        print(link(access, listening.getsockname()[1]), flush=True)
        serve(
            hub,
            access,
            listening,
            lambda server: threading.Thread(target=end_with_the_run, args=(server,), daemon=True).start(),
        )


if __name__ == "__main__":
    main()
