"""The switch is a state of torch's custom operations: it must be back afterwards."""

from __future__ import annotations

import pytest

from tiebreak.layers import plain_convolutions as module


def test_the_kernels_are_off_inside_and_on_again_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AHEAD", True)
    with module.plain_convolutions():
        assert all("cuda" in op._disabled_kernel for op in module.OPS)
    assert not any(op._disabled_kernel for op in module.OPS)
