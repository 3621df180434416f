from __future__ import annotations

import pytest

from tiebreak.data.load_progress import Telling


def test_what_is_over_soon_is_not_told_and_the_rest_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("tiebreak.data.load_progress.time.monotonic", lambda: now)
    tell = Telling("making features")
    for seconds, done in [(1.9, 10), (2.0, 0), (5.0, 300), (11.9, 400), (12.0, 500), (12.1, 501), (24.0, 1000)]:
        now = 100.0 + seconds
        tell(done, 1000)
    assert capsys.readouterr().err.splitlines() == [
        "tiebreak: making features: 0 of 1,000",
        "tiebreak: making features: 500 of 1,000, about 12 s left",
    ]
