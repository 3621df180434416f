from __future__ import annotations

import pytest
import torch

from tiebreak.errors import TiebreakError
from tiebreak.layers import taylor, taylor_triton


def test_it_is_refused_in_one_line_where_it_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(1, 4, 8)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(TiebreakError, match=r'form="triton".*(CUDA|installed).*form="auto"'):
        taylor.attend(x, x, x, form="triton")
    monkeypatch.setattr(taylor_triton, "INSTALLED", True)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    for given, terms, why in ((x, 4, "terms"), (torch.randn(1, 4, 33), 3, "33"), (x.double(), 3, "float64")):
        assert why in str(taylor_triton.refusal(given, given, terms))
    assert taylor_triton.refusal(x, x, 3) is None
    monkeypatch.setattr(taylor_triton, "AUTO_LENGTH", 1)
    assert not taylor_triton.chosen(x, x, x, 3)  # not on a GPU


def test_its_shapes_are_known_without_running() -> None:
    q, v = (torch.randn(2, 3, 1025, width, device="meta", dtype=torch.bfloat16) for width in (16, 64))
    found = taylor_triton.taylor_attend(q, q, v, None, [3.0, 1.0, 1.0])
    assert [each.shape for each in found] == [(2, 3, 1025, 64), (2, 3, 1025), (2, 3, 2, 160, 64), (2, 3, 2, 160)]
