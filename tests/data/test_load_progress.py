from __future__ import annotations

import pytest

from tiebreak.data.load_progress import LoadProgress


def test_short_work_prints_nothing_and_long_work_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("tiebreak.data.load_progress.time.monotonic", lambda: now)
    report = LoadProgress("making features")
    for seconds, done in [(1.9, 10), (2.0, 0), (5.0, 300), (11.9, 400), (12.0, 500), (12.1, 501), (24.0, 1000)]:
        now = 100.0 + seconds
        report(done, 1000)
    first, second = capsys.readouterr().err.splitlines()
    assert "making features: 0 of 1,000" in first
    assert "500 of 1,000" in second
    assert "12 s left" in second
