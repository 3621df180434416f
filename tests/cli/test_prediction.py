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

BRANCHES = """
from torch import nn

class Branches(nn.Module):
    def __init__(self, shape, convolutional=False):
        super().__init__()
        self.first = nn.Conv2d(shape.channels, shape.channels, 1) if convolutional else nn.Identity()
        self.out = nn.Linear(shape.channels * shape.height * shape.width, shape.classes)

    def forward(self, images):
        logits = self.out(self.first(images).flatten(1))
        return logits if logits.sum() > 0 else -logits

DESIGNS = {"branches": Branches}
"""


@pytest.mark.parametrize("convolutional", [False, True])
def test_what_a_loop_costs_was_measured_for_convolutions_only(tmp_path: Path, convolutional: bool) -> None:
    (tmp_path / "own.py").write_text(BRANCHES)
    arms = [{"name": name, "design": "branches", "build": {"convolutional": convolutional}} for name in ("one", "two")]
    study = small_study(arms=arms, comparisons=[{"a": "one", "b": "two"}], designs_from=str(tmp_path / "own.py"))
    written, data = io.StringIO(), write_data(tmp_path)
    show_prediction(Console(file=written, width=200), make_plan(study, data), Machine(data_dir=data))
    assert "cannot be fused" in written.getvalue()
    assert ("takes CNNs" in " ".join(written.getvalue().split())) == convolutional


def test_a_gpu_that_is_not_there_is_named_and_no_time_is_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    written = io.StringIO()
    data = write_data(tmp_path)
    show_prediction(Console(file=written, width=200), make_plan(small_study(), data), Machine(device="cuda"))
    for part in ("cnn-pool", "predicted memory", "no predicted time", "sees no GPU"):
        assert part in written.getvalue()
