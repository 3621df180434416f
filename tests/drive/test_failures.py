from __future__ import annotations

from pathlib import Path

from support.small_study import one_run, write_data
from tiebreak.drive.failures import failed


def test_a_failed_run_says_how_far_it_came(tmp_path: Path) -> None:
    run = one_run(write_data(tmp_path / "data"))
    record = failed(run, 2, "why").record
    assert (record.identity, record.trajectory) == (run.identity, run.trajectory)
    assert (record.status, record.epoch, record.reason) == ("failed", 2, "why")
