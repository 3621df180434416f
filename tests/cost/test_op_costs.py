"""What torch's counter misses or gets wrong, against the numbers by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.cost import measure
from tiebreak.layers import graph
from tiebreak.layers import stacked_conv as conv

X = torch.randn(2, 5, 8)  # B T I


def counted(call: Callable[[], object]) -> int | None:
    with torch.no_grad():
        return measure.count(call).flops


def test_lstm_in_every_shape() -> None:
    one = 4 * 7 * (8 + 7)
    assert counted(lambda: nn.LSTM(8, 7, batch_first=True)(X)) == 2 * 10 * one
    two = nn.LSTM(8, 7, num_layers=2, bidirectional=True, batch_first=True)
    assert counted(lambda: two(X)) == 2 * 10 * 2 * (one + 4 * 7 * (14 + 7))


@pytest.mark.parametrize(("layer", "gates"), [(nn.RNN, 1), (nn.GRU, 3)])
def test_other_recurrent_layers(layer: type[nn.RNN], gates: int) -> None:
    assert counted(lambda: layer(8, 7, batch_first=True)(X)) == 2 * 10 * gates * 7 * (8 + 7)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    q, k = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4)
    assert counted(lambda: F.scaled_dot_product_attention(q, k, k, is_causal=causal)) == 2 * 6 * 5 * 5 * 8
    assert counted(lambda: F.scaled_dot_product_attention(q, k, k[..., :3])) == 2 * 6 * 5 * 5 * 7


@pytest.mark.parametrize("weights", [False, True])
def test_multi_head_attention_of_torch(weights: bool) -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    fast = torch.backends.mha.get_fastpath_enabled()
    assert counted(lambda: layer(X, X, X, need_weights=weights)) == 2 * (10 * 4 * 8 * 8 + 2 * 2 * 5 * 5 * 8)
    assert torch.backends.mha.get_fastpath_enabled() == fast


def test_a_transformer_layer() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    assert counted(lambda: layer(X)) == 2 * (10 * 4 * 8 * 8 + 2 * 2 * 5 * 5 * 8 + 2 * 10 * 8 * 16)


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
def test_sparse_products_count_entries() -> None:
    matrix, x = graph.normalise([(0, 1), (1, 2)], 6), torch.randn(6, 3)
    entries = 2 * 2 + 6
    assert counted(lambda: graph.propagate(matrix, x)) == 2 * entries * 3
    assert counted(lambda: matrix @ x) == 2 * entries * 3
    csr = matrix.to_dense().to_sparse_csr()
    assert counted(lambda: csr @ x) == 2 * entries * 3
    assert counted(lambda: csr @ x[:, 0]) == 2 * entries
    assert counted(lambda: matrix.to_dense() @ x) == 2 * 36 * 3


def test_a_product_of_two_sparse_matrices_is_unknown() -> None:
    matrix = graph.normalise([(0, 1), (1, 2)], 6)
    found = measure.count(lambda: torch.sparse.mm(matrix, matrix))
    assert found.flops is None
    assert found.multiply_adds is None
    assert found.unknown


def test_vectors() -> None:
    a, x = torch.randn(5, 7), torch.randn(7)
    assert counted(lambda: a @ x) == 2 * 35
    assert counted(lambda: x @ x) == 2 * 7
    assert counted(lambda: torch.addmv(torch.randn(5), a, x)) == 2 * 35


def test_our_own_convolutions() -> None:
    runs, x, weight, bias = 3, torch.randn(3, 2, 4, 9, 8), torch.randn(3, 5, 4, 3, 2), torch.randn(3, 5)
    places, each = 2 * 9 * 9, 5 * 4 * 3 * 2
    options = ([1, 1], [1, 1], [1, 1])
    out = conv.conv(x, weight, bias, *options)
    assert counted(lambda: conv.conv(x, weight, bias, *options)) == 2 * runs * places * each
    assert counted(lambda: conv.conv_input_gradient(out, weight, [9, 8], *options)) == 2 * runs * places * each
    assert counted(lambda: conv.conv_weight_gradient(out, x, [3, 2], *options)) == 2 * runs * places * each


def test_gradients_count_too() -> None:
    layer, x = nn.Linear(8, 3), X.clone().requires_grad_()
    assert measure.count(lambda: layer(x).sum().backward()).flops == 3 * 2 * 10 * 8 * 3
    q = torch.randn(1, 2, 6, 4, requires_grad=True)
    once = 2 * 2 * 6 * 6 * 4

    def attend() -> None:
        F.scaled_dot_product_attention(q, q, q).sum().backward()  # type: ignore[no-untyped-call]

    assert measure.count(attend).flops == (2 + 5) * once
    recurrent = nn.LSTM(8, 7, batch_first=True)
    found = measure.count(lambda: recurrent(x)[0].sum().backward()).flops
    assert found == 3 * 2 * 10 * 4 * 7 * 15


@torch.library.custom_op("tiebreak_tests::mystery", mutates_args=())
def mystery(x: Tensor) -> Tensor:
    return x @ x.mT


@pytest.mark.parametrize(
    "call",
    [
        lambda: mystery(X),
        lambda: X @ X.mT + mystery(X),
        lambda: torch.fft.fft(X),
        lambda: torch.linalg.inv(X[:, :, :5]),
    ],
)
def test_work_by_no_known_rule_is_unknown_and_named(call: Callable[[], object]) -> None:
    found = measure.count(call)
    assert found.flops is None
    assert found.unknown


@pytest.mark.parametrize(
    "layer",
    [
        nn.LayerNorm(8), nn.Softmax(-1), nn.GELU(), nn.Dropout(0.5), nn.BatchNorm1d(5), nn.MaxPool1d(2),
        nn.AvgPool1d(2), nn.GroupNorm(1, 5), nn.Upsample(scale_factor=2), nn.RMSNorm(8),
        nn.AdaptiveAvgPool1d(2), nn.ZeroPad1d(1), nn.LogSoftmax(-1), nn.PReLU(),
        nn.InstanceNorm1d(5), nn.CircularPad1d(1), nn.GLU(),
    ],
    ids=repr,
)  # fmt: skip
def test_what_goes_element_by_element_is_free(layer: nn.Module) -> None:
    linear = nn.Linear(8, 8)
    found = measure.count(lambda: layer(linear(X)))
    assert found.unknown == ()
    assert found.flops == 2 * 10 * 64
