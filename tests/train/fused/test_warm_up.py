"""What a worker loads before its first job."""

from __future__ import annotations

import sys

import pytest
import torch

from tiebreak.train.fused.warm_up import trace_something, warm_up


def test_nothing_happens_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiebreak.train.fused.warm_up.trace_something", lambda: pytest.fail("was called"))
    warm_up("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    warm_up("cuda")


def test_tracing_loads_what_torch_imports_late() -> None:
    trace_something()
    assert {"torch._dynamo", "sympy"} <= set(sys.modules)


@pytest.mark.gpu
def test_the_gpu_has_a_context_afterwards() -> None:
    warm_up("cuda")
    assert torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    assert "triton" in sys.modules
