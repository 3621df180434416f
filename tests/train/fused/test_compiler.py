from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.layers.stacked_conv import conv
from tiebreak.train.fused.compiler import FOLDER, compile_graph


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the compiler has its warnings
def test_a_graph_with_our_operations_is_compiled_once_and_then_read_from_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._dynamo.utils import counters

    def function(x: Tensor, weight: Tensor, bias: Tensor) -> list[Tensor]:
        return [conv(x, weight, bias, [1, 1], [1, 1], [1, 1]).tanh() + 1]

    monkeypatch.setenv(FOLDER, str(tmp_path))
    inputs = [torch.rand(2, 3, 2, 5, 5), torch.rand(2, 4, 2, 3, 3), torch.rand(2, 4)]
    graph = make_fx(function, tracing_mode="fake")(*inputs)
    for count, kind in enumerate(("miss", "hit")):
        counters.clear()
        found = compile_graph(graph, inputs)(*inputs)
        assert counters["inductor"][f"fxgraph_cache_{kind}"] == 1, (count, dict(counters["inductor"]))
        torch.testing.assert_close(found[0], function(*inputs)[0])
    assert os.environ[FOLDER] == str(tmp_path)
