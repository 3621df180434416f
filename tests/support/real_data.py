"""The published data sets, where this machine has them; tests that need one are skipped elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support import REAL_DATA

REAL = Path(os.environ.get("TIEBREAK_REAL_DATA", REAL_DATA))


def need(*names: str) -> Path:
    """The folder with the published data sets, if it holds all of these; otherwise the test is skipped."""
    missing = [name for name in names if not (REAL / name).exists()]
    if missing:
        pytest.skip(f"{REAL / missing[0]} is not here")
    return REAL
