"""What of a user's folder was not read, in one line for `tiebreak data check`."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from tiebreak.text import listed, number_of, printable

SHOWN = 5  # names of files that are listed
MOST = 100_000  # files that are looked at


def left_out(root: Path, used: Collection[Path]) -> tuple[str, ...]:
    """One line that counts and names the files below a folder that are not among those used; none if all are.

    Hidden files and files in deeper folders count too: nothing is passed over without a word.
    """
    found, seen = list[str](), 0
    for place, folders, names in os.walk(root):
        folders.sort()
        seen += len(names)
        found += [os.path.relpath(Path(place, name), root) for name in sorted(names) if Path(place, name) not in used]
        if seen > MOST:
            break
    if not found:
        return ()
    shown = [*map(printable, found[:SHOWN]), *(["others"] if len(found) > SHOWN else [])]
    more = " at least" if seen > MOST else ""
    return (f"left out:{more} {number_of(len(found), 'file')}: {listed(shown)}",)
