"""The ops and the layers against torch's convolutions and autograd. Their kernels are in tests/layers/kernels."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from support.convolutions import DEPTHWISE, PRODUCTS, TAPS, Shape, tensors_of
from tiebreak.layers.product_conv import (
    ProductConv1d,
    ProductConv2d,
    product_conv,
    product_conv_input,
    product_conv_weight,
    use_products,
)

SHAPES = PRODUCTS | TAPS | {f"depthwise, {name}": shape for name, shape in DEPTHWISE.items()}
CLOSE: Any = {"rtol": 1e-12, "atol": 1e-12}


def test_small_batches_take_it_where_the_other_form_has_nothing() -> None:
    layers = nn.Sequential(nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 3, groups=2), nn.Conv1d(4, 4, 3))
    use_products(layers, batch=8)
    assert [type(layer) for layer in layers] == [nn.Conv2d, ProductConv2d, ProductConv1d]
    use_products(layers, batch=64)
    assert type(layers[0]) is ProductConv2d


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_strides_are_known_before_anything_is_computed(name: str) -> None:
    shape = SHAPES[name]
    x, weight, bias, dy = tensors_of(shape, torch.float64)
    how = (*shape.how, shape.groups)
    for op, arguments in (
        (product_conv, (x, weight, bias)),
        (product_conv_input, (dy, weight, list(shape.size))),
        (product_conv_weight, (dy, x, list(shape.kernel))),
    ):
        torch.library.opcheck(op, (*arguments, *how), test_utils=("test_schema", "test_faketensor"))
    bf16 = product_conv_weight(dy.bfloat16(), x.bfloat16(), list(shape.kernel), *how)
    assert bf16.dtype == torch.float32


def layer_of(shape: Shape, seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sides = shape.kernel, shape.stride, shape.padding, shape.dilation
        layer = nn.Conv2d(shape.inputs, shape.outputs, *sides, groups=shape.groups, bias=shape.biased)
        return nn.Sequential(layer).double()


def gradients(network: nn.Module) -> Any:
    def loss(params: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(network, params, (x,)).square().sum()  # type: ignore[no-any-return]

    return grad(loss, argnums=(0, 1))


@pytest.mark.parametrize("name", SHAPES)
def test_many_layers_at_once_are_each_of_torchs(name: str) -> None:
    shape = SHAPES[name]
    plain = [layer_of(shape, seed) for seed in range(2)]
    ours = copy.deepcopy(plain[0])
    use_products(ours)
    assert type(ours[0]) is ProductConv2d  # type: ignore[index]
    x = tensors_of(shape, torch.float64)[0]
    params, _ = stack_module_state(plain)
    graph = make_fx(vmap(gradients(ours)), tracing_mode="fake", _allow_non_fake_inputs=True)(params, x)
    found, dx = graph(params, x)
    for run, network in enumerate(plain):
        wanted, own = gradients(network)(dict(network.named_parameters()), x[run])
        torch.testing.assert_close(dx[run], own, **CLOSE)
        for key, values in wanted.items():
            torch.testing.assert_close(found[key][run], values, **CLOSE)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolutions_of_one_dimension(groups: int) -> None:
    plain = nn.Conv1d(4, 8, 3, stride=2, padding=1, dilation=2, groups=groups).double()
    ours = nn.Sequential(copy.deepcopy(plain))
    use_products(ours)
    assert type(ours[0]) is ProductConv1d
    x = torch.randn(3, 4, 17, dtype=torch.float64)
    torch.testing.assert_close(ours(x), plain(x), **CLOSE)


def test_under_autocast_products_are_rounded_and_gradients_are_float32() -> None:
    layer = nn.Sequential(nn.Conv2d(3, 4, 3, groups=1))
    x = torch.rand(2, 3, 6, 6)
    wanted = layer(x)
    use_products(layer)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    assert torch.allclose(y.float(), wanted, atol=0.02)
    dw, _ = torch.autograd.grad(y.float().square().sum(), list(layer.parameters()))
    assert dw.dtype == torch.float32


@pytest.mark.parametrize(
    "layer",
    [nn.Conv2d(2, 2, 3, padding="same"), nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"), nn.Conv3d(2, 2, 3)],
    ids=["same", "reflect", "3d"],
)
def test_other_convolutions_stay_as_they_are(layer: nn.Module) -> None:
    kind = type(layer)
    use_products(nn.Sequential(layer))
    assert type(layer) is kind
