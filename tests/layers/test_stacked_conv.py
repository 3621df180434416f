"""The ops and the layer against F.conv2d and autograd. Their kernels for a GPU are in test_gpu_kernels.py."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from tiebreak.layers.stacked_conv import (
    PARTS,
    StackedConv2d,
    chunk_of,
    conv,
    conv_input_gradient,
    conv_weight_gradient,
    stack_convolutions,
)

OPS = (conv, conv_input_gradient, conv_weight_gradient)
How = tuple[list[int], list[int], list[int]]  # stride, padding, dilation
CLOSE: Any = {"rtol": 1e-12, "atol": 1e-12}

two = st.tuples(st.integers(1, 3), st.integers(1, 3)).map(list)
hows = st.tuples(
    two, st.tuples(st.integers(0, 2), st.integers(0, 2)).map(list), st.tuples(*[st.integers(1, 2)] * 2).map(list)
)
cases = given(
    sizes=st.tuples(*[st.integers(1, 3)] * 4),  # runs, rows, channels in and out
    image=st.tuples(st.integers(7, 11), st.integers(7, 11)),
    kernel=two,
    how=hows,
)
often = settings(max_examples=25, deadline=None)


def draw(*shapes: tuple[int, ...], seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def problem(sizes: tuple[int, ...], image: tuple[int, int], kernel: list[int]) -> list[Tensor]:
    """x, weight and bias of a few runs."""
    runs, rows, inputs, outputs = sizes
    return draw((runs, rows, inputs, *image), (runs, outputs, inputs, *kernel), (runs, outputs))


@often
@cases
def test_the_ops_are_conv2d_and_its_gradients(
    sizes: tuple[int, ...], image: tuple[int, int], kernel: list[int], how: How
) -> None:
    x, weight, bias = problem(sizes, image, kernel)
    y = torch.ops.tiebreak.conv(x, weight, bias, *how)
    (dy,) = draw(tuple(y.shape), seed=1)
    dx = torch.ops.tiebreak.conv_input_gradient(dy, weight, list(image), *how)
    parts = torch.ops.tiebreak.conv_weight_gradient(dy, x, kernel, *how)
    assert parts.shape[1] == -(-sizes[1] // chunk_of(sizes[1])) <= PARTS
    both = parts.sum(dim=1)
    for run in range(sizes[0]):
        inputs = [each[run].clone().requires_grad_() for each in (x, weight, bias)]
        wanted = F.conv2d(inputs[0], inputs[1], inputs[2], *how)
        torch.testing.assert_close(y[run], wanted, **CLOSE)
        gradients = torch.autograd.grad(wanted, inputs, dy[run])
        torch.testing.assert_close(dx[run], gradients[0], **CLOSE)
        torch.testing.assert_close(both[run, :, :-1].view(gradients[1].shape), gradients[1], **CLOSE)
        torch.testing.assert_close(both[run, :, -1], gradients[2], **CLOSE)


@pytest.mark.parametrize("rows", [1, 5, 16, 17, 40])
def test_a_weight_gradient_comes_in_parts_of_some_rows_each(rows: int) -> None:
    x, dy = draw((2, rows, 2, 5, 6), (2, rows, 3, 3, 4))
    parts = torch.ops.tiebreak.conv_weight_gradient(dy, x, [3, 3], [1, 1], [0, 0], [1, 1])
    chunk = chunk_of(rows)
    assert parts.shape == (2, -(-rows // chunk), 3, 2 * 9 + 1)
    assert parts.shape[1] <= PARTS
    first = torch.ops.tiebreak.conv_weight_gradient(dy[:, :chunk], x[:, :chunk], [3, 3], [1, 1], [0, 0], [1, 1])
    torch.testing.assert_close(parts[:, 0], first.sum(dim=1), **CLOSE)


@settings(max_examples=10, deadline=None)
@cases
def test_shapes_and_strides_are_known_before_anything_is_computed(
    sizes: tuple[int, ...], image: tuple[int, int], kernel: list[int], how: How
) -> None:
    x, weight, bias = problem(sizes, image, kernel)
    (dy,) = draw(tuple(conv(x, weight, bias, *how).shape))
    arguments: list[tuple[Any, ...]] = [(x, weight, bias), (dy, weight, list(image)), (dy, x, kernel)]
    for op, given_ in zip(OPS, arguments, strict=True):
        torch.library.opcheck(op, (*given_, *how), test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("rows", [16, 17, 33])
def test_the_number_of_parts_is_known_too(rows: int) -> None:
    x, dy = draw((2, rows, 2, 5, 6), (2, rows, 3, 3, 4))
    arguments = (dy, x, [3, 3], [1, 1], [0, 0], [1, 1])
    torch.library.opcheck(conv_weight_gradient, arguments, test_utils=("test_schema", "test_faketensor"))


@settings(max_examples=15, deadline=None)
@cases
def test_the_layer_alone_has_the_numbers_and_gradients_of_conv2d(
    sizes: tuple[int, ...], image: tuple[int, int], kernel: list[int], how: How
) -> None:
    _, rows, inputs, outputs = sizes
    stride, padding, dilation = (tuple(each) for each in how)
    for bias in (True, False):
        plain = nn.Conv2d(inputs, outputs, tuple(kernel), stride, padding, dilation, bias=bias).double()  # type: ignore[arg-type]
        ours = nn.Sequential(copy.deepcopy(plain))
        stack_convolutions(ours)
        assert type(ours[0]) is StackedConv2d
        (x,) = draw((rows, inputs, *image))
        found = []
        for layer in (plain, ours):
            own = x.clone().requires_grad_()
            y = layer(own)
            found.append([y, *torch.autograd.grad(y.square().sum(), [own, *layer.parameters()])])
        for mine, wanted in zip(found[1], found[0], strict=True):
            torch.testing.assert_close(mine, wanted, **CLOSE)


def networks(count: int, *, bias: bool = True) -> list[nn.Module]:
    """Two convolutions each: the first one's input needs no gradient, the second one's does."""
    made: list[nn.Module] = []
    for seed in range(count):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layers = nn.Conv2d(2, 3, 3, padding=1, bias=bias), nn.Conv2d(3, 4, (2, 3), stride=2, bias=bias)
        made.append(nn.Sequential(layers[0], nn.Tanh(), layers[1]).double())
    return made


def gradients_of(network: nn.Module) -> Any:
    def loss(params: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(network, params, (x,)).square().sum()  # type: ignore[no-any-return]

    return grad(loss)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("shared", [True, False], ids=["one input for all", "an input each"])
@pytest.mark.parametrize("traced", [True, False], ids=["traced", "called"])
def test_many_layers_at_once_are_each_of_them(bias: bool, shared: bool, traced: bool) -> None:
    each = networks(3, bias=bias)
    x = draw((5, 2, 7, 8) if shared else (3, 5, 2, 7, 8))[0]
    wanted = [
        gradients_of(network)(dict(network.named_parameters()), own) for network, own in zip(each, rows(x), strict=True)
    ]
    stacked = copy.deepcopy(each[0])
    stack_convolutions(stacked)
    params, _ = stack_module_state(each)
    function = vmap(gradients_of(stacked), in_dims=(0, None if shared else 0))
    if traced:
        graph = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True)(params, x)
        used = {str(node.target) for node in graph.graph.nodes}
        assert {f"tiebreak.{op}.default" for op in ("conv", "conv_input_gradient", "conv_weight_gradient")} <= used
        function = graph
    found = function(params, x)
    for row, gradient in enumerate(wanted):
        for name, values in gradient.items():
            torch.testing.assert_close(found[name][row], values, **CLOSE)


def rows(x: Tensor) -> list[Tensor]:
    return [x] * 3 if x.ndim == 4 else list(x)


def test_a_shared_weight_and_a_run_axis_elsewhere_are_taken_too() -> None:
    layer = StackedConv2d(2, 3, 3).double()
    (x,) = draw((4, 2, 6, 3, 7))  # the runs are on axis 3
    found = vmap(layer, in_dims=3, out_dims=1)(x)
    wanted = torch.stack([layer(own) for own in x.unbind(3)], dim=1)
    torch.testing.assert_close(found, wanted, **CLOSE)


def test_a_second_derivative_is_refused() -> None:
    layer = StackedConv2d(1, 1, 3).double()
    (x,) = draw((1, 1, 5, 5))
    (first,) = torch.autograd.grad(layer(x).square().sum(), layer.weight, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(first.sum(), layer.weight)


def test_plain_convolutions_are_switched_and_keep_their_state() -> None:
    network = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.Sequential(nn.Conv2d(3, 4, 2, stride=2, dilation=2)))
    before = copy.deepcopy(network)
    stack_convolutions(network)
    assert [type(layer) for layer in network.modules() if isinstance(layer, nn.Conv2d)] == [StackedConv2d] * 2
    assert network.state_dict().keys() == before.state_dict().keys()
    assert all(torch.equal(values, before.state_dict()[name]) for name, values in network.state_dict().items())
    before.load_state_dict(network.state_dict())
    x = torch.rand(2, 2, 9, 8)
    torch.testing.assert_close(network(x), before(x))


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(2, 2, 3, groups=2),
        nn.Conv2d(2, 2, 3, padding="same"),
        nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"),
        nn.Conv1d(2, 2, 3),
        type("Own", (nn.Conv2d,), {})(2, 2, 3),
    ],
    ids=["groups", "same", "reflect", "1d", "a subclass"],
)
def test_other_convolutions_stay_as_they_are(layer: nn.Module) -> None:
    kind = type(layer)
    stack_convolutions(nn.Sequential(layer))
    assert type(layer) is kind
