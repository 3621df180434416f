"""How processes of our own are started."""

from __future__ import annotations

import sys
from pathlib import Path


def python(module: str) -> list[str]:
    """The command that runs one of our modules. A file in the current folder cannot take the place of a library.

    `python -m` alone looks there first, and a folder of experiments may well hold a `torch` or a `random.py`.
    """
    from_source = Path.cwd() == Path(__file__).resolve().parent.parent  # found there, and perhaps nowhere else
    return [sys.executable, *([] if from_source else ["-P"]), "-m", module]
