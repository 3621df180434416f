from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.layers import mapped_norm
from tiebreak.layers.mapped_forms import mapped_forms
from tiebreak.layers.mapped_norm import normalise, own_norms
from tiebreak.layers.transforms import once_differentiated

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(3, 2, 5, 4, generator=GENERATOR, dtype=torch.float64) * 2 + 1
WEIGHT, BIAS = (torch.randn(3, 4, generator=GENERATOR, dtype=torch.float64) for _ in range(2))


@pytest.fixture(name="taken")
def _taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The form is taken as on a GPU."""
    monkeypatch.setattr(mapped_norm, "_takes", lambda *tensors: mapped_norm._form[-1] and once_differentiated())


def _loss(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    with mapped_forms():
        return F.layer_norm(x, (4,), weight, bias, 1e-3).sin().sum()


def test_gradients_of_many_runs_are_those_of_torch(taken: None) -> None:
    found = vmap(grad(_loss, argnums=(0, 1, 2)))(X, WEIGHT, BIAS)
    with own_norms(False):
        wanted = vmap(grad(_loss, argnums=(0, 1, 2)))(X, WEIGHT, BIAS)
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs)
    shared = vmap(grad(_loss, argnums=1), in_dims=(0, None, None))(X, WEIGHT[0], BIAS[0])
    torch.testing.assert_close(shared[0], found[1][0])
    torch.testing.assert_close(grad(_loss)(X[0], WEIGHT[0], BIAS[0]), found[0][0])


def test_a_layer_of_a_traced_network_becomes_the_op(taken: None) -> None:
    network = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2)).double()
    params = {name: torch.stack([values.detach()] * 3) for name, values in network.named_parameters()}

    def one(own: Any, x: Tensor) -> Tensor:
        with mapped_forms():
            found: Tensor = functional_call(network, own, (x,))
        return found

    traced = make_fx(vmap(one), tracing_mode="fake")(params, X)
    targets = [str(node.target) for node in traced.graph.nodes]
    assert "tiebreak.layer_norm.default" in targets
    torch.testing.assert_close(traced(params, X), network(X))


def test_what_the_kernels_do_not_take_is_left_to_torch(taken: None) -> None:
    assert normalise(X[0], (4,), None, None) is None
    assert normalise(X[0], (5, 4), torch.ones(5, 4), torch.zeros(5, 4)) is None
    with own_norms(False):
        assert normalise(X[0], (4,), WEIGHT[0], BIAS[0]) is None


def test_on_a_cpu_it_is_torchs() -> None:
    assert normalise(X[0], (4,), WEIGHT[0], BIAS[0]) is None


@pytest.mark.gpu
def test_gradients_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_norm, "LEAST", 1)
    wanted = vmap(grad(_loss, argnums=(0, 1, 2)))(X, WEIGHT, BIAS)
    given = [each.float().to("cuda") for each in (X, WEIGHT, BIAS)]
    traced = make_fx(vmap(grad(_loss, argnums=(0, 1, 2))), tracing_mode="fake")(*given)
    assert "layer_norm_gradient" in traced.code
    for mine, theirs in zip(traced(*given), wanted, strict=True):
        torch.testing.assert_close(mine.cpu().double(), theirs, rtol=1e-4, atol=1e-5)


def test_a_gradient_of_a_gradient_is_left_to_torch(taken: None) -> None:
    def steep(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        assert mapped_norm._mapped()
        slope: Tensor = grad(lambda own: _inner(own, weight, bias))(x)
        return slope.sin().sum()

    def _inner(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        assert not mapped_norm._mapped()
        return _loss(x, weight, bias)

    found = vmap(grad(steep))(X, WEIGHT, BIAS)
    with own_norms(False):
        torch.testing.assert_close(found, vmap(grad(steep))(X, WEIGHT, BIAS))
