"""What several tests share: tiny studies, hand-made records, sample reports, and where things lie."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
REAL_DATA = REPOSITORY.parent / "shared" / "data"  # may be absent: tests that read it skip with the reason
