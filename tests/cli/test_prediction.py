from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from rich.console import Console

from support.small_study import small_study, write_data
from tiebreak.cli.prediction import show_prediction
from tiebreak.drive.machine import Machine
from tiebreak.plan.planner import make_plan


def test_a_gpu_that_is_not_there_is_named_and_no_time_is_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    written = io.StringIO()
    data = write_data(tmp_path)
    show_prediction(Console(file=written, width=200), make_plan(small_study(), data), Machine(device="cuda"))
    for part in ("cnn-pool", "predicted memory", "no predicted time", "sees no GPU"):
        assert part in written.getvalue()
