"""A whole sequence as one op: against torch's layers, alone and under vmap, with its gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.layers import recurrent_scan
from tiebreak.layers.gru import Gru
from tiebreak.layers.lstm import Lstm
from tiebreak.layers.recurrent_steps import KINDS
from tiebreak.layers.rnn import Rnn, use_plain_cells

pytestmark = pytest.mark.usefixtures("one_thread")


def layer_of(kind: str, **how: Any) -> Any:
    made = {"lstm": Lstm, "gru": Gru}
    return (made[kind](4, 3, **how) if kind in made else Rnn(4, 3, kind, **how)).double()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", [False, True])
def test_as_one_op_a_layer_computes_the_same(kind: str, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer = layer_of(kind, bidirectional=True, layers=2)
    use_plain_cells(layer, True)
    x = torch.randn(3, 5, 4, dtype=torch.float64, requires_grad=True)
    parts = [torch.randn(4, 3, 3, dtype=torch.float64, requires_grad=True) for _ in range(layer.memories)]
    state: Any = tuple(parts) if len(parts) > 1 else parts[0]
    lengths = torch.tensor([2, 5, 1]) if packed else None

    def everything() -> list[Tensor]:
        outputs, last = layer(x, state, lengths)
        results = [outputs, *(last if isinstance(last, tuple) else (last,))]
        loss = sum((each * torch.arange(1, each.numel() + 1).view_as(each).sin()).sum() for each in results)
        assert isinstance(loss, Tensor)
        return [*results, *torch.autograd.grad(loss, [*layer.parameters(), x, *parts])]

    wanted = everything()
    monkeypatch.setattr(recurrent_scan, "FORCED", "kernel")
    for one, other in zip(wanted, everything(), strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_runs_together_are_each_run_alone_and_few_operations(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layers: list[nn.Module] = [layer_of(kind) for _ in range(3)]
    for layer in layers:
        use_plain_cells(layer, True)
    params, _ = stack_module_state(layers)
    x, lengths = torch.randn(3, 2, 9, 4, dtype=torch.float64), torch.tensor([[9, 2], [1, 5], [3, 3]])

    def loss(params: dict[str, Tensor], x: Tensor, lengths: Tensor) -> Tensor:
        outputs, _ = functional_call(layers[0], params, (x, None, lengths))
        return outputs.square().sum()  # type: ignore[no-any-return]

    step = vmap(grad_and_value(loss))
    wanted = step(params, x, lengths)
    monkeypatch.setattr(recurrent_scan, "FORCED", "kernel")
    traced = make_fx(step, tracing_mode="fake")(params, x, lengths)
    assert len(traced.graph.nodes) < 120  # the op: and not some ten for each of nine steps
    for found in (step(params, x, lengths), traced(params, x, lengths)):
        assert torch.allclose(found[1], wanted[1], rtol=1e-12)
        assert all(torch.allclose(found[0][name], wanted[0][name], atol=1e-12, rtol=0) for name in params)


def test_a_cpu_takes_the_loop_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent_scan, "FORCED", None)
    assert recurrent_scan.form_of(torch.zeros(4, 1)) == "steps"


@pytest.mark.gpu
def test_on_a_gpu_narrow_layers_take_the_op(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent_scan, "FORCED", None)
    widest = recurrent_scan.WIDEST
    assert recurrent_scan.form_of(torch.zeros(4, widest, device="cuda")) == "kernel"
    assert recurrent_scan.form_of(torch.zeros(4, widest + 1, device="cuda")) != "kernel"
    assert recurrent_scan.form_of(torch.zeros(4, widest, device="cuda", dtype=torch.float64)) == "steps"
