"""What the torture tests did, in numbers: each test adds lines to the file TORTURE_LOG as it goes.

So a run that is cut short has counted what it did. `python -m support.torture_log LOG` sums them up as JSON.

TORTURE_UNTIL, in seconds since 1970, is when tests that have not begun are skipped.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest


def count(what: str, number: int = 1, **named: str) -> None:
    """Add to the number of something, such as kills, with names to count it by."""
    if path := os.environ.get("TORTURE_LOG"):
        line = json.dumps({"what": what, "number": number, **named}) + "\n"
        with Path(path).open("a", encoding="utf-8") as file:  # one short line: appended whole, by many processes
            file.write(line)


def skip_when_late() -> None:
    """Skip the rest of a test when the time is up."""
    until = os.environ.get("TORTURE_UNTIL")
    if until and time.time() > float(until):
        pytest.skip("the time is up")


def summed(lines: list[str]) -> dict[str, Any]:
    """The totals, and those by name."""
    totals: Counter[str] = Counter()
    by_name: dict[str, Counter[str]] = {}
    for line in lines:
        found = json.loads(line)
        what, number = found.pop("what"), found.pop("number")
        totals[what] += number
        for key, name in found.items():
            by_name.setdefault(f"{what} by {key}", Counter())[name] += number
    parts = {key: dict(sorted(counts.items())) for key, counts in sorted(by_name.items())}
    return {**dict(sorted(totals.items())), **parts}


if __name__ == "__main__":
    log = Path(sys.argv[1])
    print(json.dumps(summed(log.read_text("utf-8").splitlines() if log.exists() else []), indent=2))
