from __future__ import annotations

import pytest
import torch

from tiebreak.drive.device import device_problem, require_device
from tiebreak.errors import TiebreakError


def test_a_device_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_problem("cpu") == ""
    require_device("cpu")
    for part in ("--device cuda", "no GPU", "--device cpu"):
        assert part in device_problem("cuda")
    with pytest.raises(TiebreakError, match="no GPU"):
        require_device("cuda")
