"""Progress of long work on data, as lines on standard error; work that ends within two seconds prints nothing."""

from __future__ import annotations

import sys
import time

FIRST_SECONDS, EVERY_SECONDS = 2.0, 10.0  # until the first line, and from each line to the next


class LoadProgress:
    """Prints now and then how much is done: `LoadProgress("making features")(650, 13_100)`."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._start = time.monotonic()
        self._next = self._start + FIRST_SECONDS

    def __call__(self, done: int, total: int) -> None:
        """Print that `done` of `total` are done, unless a line was printed within the last ten seconds."""
        now = time.monotonic()
        if now < self._next or done >= total:
            return
        self._next = now + EVERY_SECONDS
        left = (now - self._start) / done * (total - done) if done else 0.0
        about = f", about {left:.0f} s left" if done else ""
        print(f"tiebreak: {self._what}: {done:,} of {total:,}{about}", file=sys.stderr, flush=True)
