"""Progress of long work on data, in lines on standard error: nothing of what is over soon."""

from __future__ import annotations

import sys
import time

FIRST, EVERY = 2.0, 10.0  # seconds until the first line, and from each to the next


class Telling:
    """How much is done, now and then: `Telling("making features")(650, 13_100)`."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._start = time.monotonic()
        self._next = self._start + FIRST

    def __call__(self, done: int, total: int) -> None:
        """Tell that `done` of `total` are done, unless that was told just now."""
        now = time.monotonic()
        if now < self._next or done >= total:
            return
        self._next = now + EVERY
        left = (now - self._start) / done * (total - done) if done else 0.0
        about = f", about {left:.0f} s left" if done else ""
        print(f"tiebreak: {self._what}: {done:,} of {total:,}{about}", file=sys.stderr, flush=True)
