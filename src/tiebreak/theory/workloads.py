"""The real layer or design behind each part of `parts`, built at given sizes, and one call of it."""

# ruff: noqa: E741  # O and I are sizes
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from tiebreak.catalog import DESIGNS
from tiebreak.cost import measure
from tiebreak.errors import TiebreakError
from tiebreak.layers import attention, graph, taylor
from tiebreak.layers.bilinear import Bilinear
from tiebreak.layers.heads import MultiHead
from tiebreak.layers.lstm import Lstm
from tiebreak.layers.pixels import attend_pixels
from tiebreak.layers.rnn import Rnn, use_plain_cells
from tiebreak.models import design
from tiebreak.models.design import Shape
from tiebreak.study import registry
from tiebreak.study.registry import Scalar
from tiebreak.theory.family_sizes import FAMILIES


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One forward pass on one example or sequence, and the module whose parameters are trained."""

    call: Callable[[], object]
    network: nn.Module


def build(part: str, sizes: Mapping[str, int]) -> Workload:
    """The part at these sizes, with random numbers that are always the same. A layer's name goes before a design's."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        if part in _LAYERS:
            return _LAYERS[part](**sizes)
        return design_workload(part, shape_of(DESIGNS[part].family, sizes), {})


def design_workload(name: str, shape: Shape, options: Mapping[str, Scalar]) -> Workload:
    """A design of the catalog; options that are not given have their defaults."""
    defaults = {key: option.default for key, option in registry.DESIGNS[name].options.items()}
    network = DESIGNS[name].network(shape, {**defaults, **options}, key=1).eval()
    return Workload(call=partial(network, *shape.inputs(1)), network=network)


def kept_numbers(workload: Workload) -> int:
    """How many numbers the forward pass keeps for the backward pass.

    Recurrent layers are run in their plain form: what torch's own kernels keep is not known.
    """
    use_plain_cells(workload.network, True)
    try:
        return sum(measure.kept_for_backward(workload.call, workload.network.parameters())[1])
    finally:
        use_plain_cells(workload.network, False)


def shape_of(family: str, sizes: Mapping[str, int]) -> Shape:
    """What a design of this family is built for."""
    return design.shape_of(family, {FAMILIES[family].fields[name]: size for name, size in sizes.items()})


def _input(*shape: int) -> Tensor:
    """An input that requires a gradient, as it does inside a network."""
    return torch.randn(shape, requires_grad=True)


def _function(function: Callable[..., object], *inputs: Tensor) -> Workload:
    return Workload(call=partial(function, *inputs), network=nn.Identity())


def _layer(network: nn.Module, *inputs: Tensor) -> Workload:
    return Workload(call=partial(network, *inputs), network=network)


def _attention(L: int, D: int, *, causal: bool = False) -> Workload:
    return _function(partial(attention.attend, causal=causal), *(_input(1, 1, L, D) for _ in range(3)))


def _attention_naive(L: int, D: int) -> Workload:
    return _function(attention.attend_naive, *(_input(1, L, D) for _ in range(3)))


def _taylor(L: int, D: int, V: int, K: int, *, form: str = "parallel") -> Workload:
    attend = partial(taylor.attend, terms=K, form=form, causal=form == "chunked")
    return _function(attend, _input(1, L, D), _input(1, L, D), _input(1, L, V))


def _taylor_full(L: int, D: int, V: int, K: int) -> Workload:
    """As the reports write it: every ordered feature of every element, then two products from right to left."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        queries, keys = (taylor.features(x * D**-0.25, K, symmetric=False) for x in (q, k))
        values = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
        sums = queries @ (keys.mT @ values)
        return sums[..., :-1] / sums[..., -1:]

    return _function(attend, _input(L, D), _input(L, D), _input(L, V))


def _heads(L: int, d: int, h: int = 1) -> Workload:
    return _layer(MultiHead(d, h, output_projection=False, bias="none"), _input(1, L, d))


def _bilinear(L: int, T: int, Q: int, D: int, O: int) -> Workload:
    return _layer(Bilinear(Q, D, O), _input(1, T, Q), _input(1, L, D))


def _pixels(H: int, W: int) -> Workload:
    return _function(attend_pixels, _input(H, W))


def _conv2d(C: int, H: int, W: int, O: int, M: int, N: int, s: int, z: int) -> Workload:
    _check_filter(H + 2 * z, W + 2 * z, M, N)
    return _layer(nn.Conv2d(C, O, (M, N), stride=s, padding=z), _input(1, C, H, W))


def _linear(I: int, O: int) -> Workload:
    return _layer(nn.Linear(I, O), _input(1, I))


def _lstm(L: int, I: int, H: int) -> Workload:
    return _layer(Lstm(I, H), _input(1, L, I))


def _rnn(L: int, I: int, H: int) -> Workload:
    return _layer(Rnn(I, H), _input(1, L, I))


def _graph(n: int, E: int, F: int, G: int) -> Workload:
    """A ring, then chords of two, of three, ..., until there are E edges."""
    most = n * (n - 1) // 2
    if E > most:  # noqa: SIM300
        raise TiebreakError(
            f"graph: {n:,} nodes have at most {most:,} edges, not {E:,}; set n too, as in --set n={2 * n}"
        )
    chords = torch.arange(1, -(-E // n) + 1).repeat_interleave(n)[:E]
    start = torch.arange(n).repeat(len(chords) // n + 1)[: len(chords)]
    matrix = graph.normalise(torch.stack([start, (start + chords) % n]), n)
    weights = nn.Linear(F, G, bias=False)

    def propagate(x: Tensor) -> Tensor:
        return graph.propagate(matrix, weights(x))

    return Workload(call=partial(propagate, _input(n, F)), network=weights)


def _conv_net(H: int, W: int, M: int, N: int) -> Workload:
    hidden = _hidden(H, W, M, N)
    conv, out = nn.Conv2d(1, 1, (M, N), bias=False), nn.Linear(hidden, 3, bias=False)
    return _layer(nn.Sequential(conv, nn.MaxPool2d(2), nn.Flatten(), out), _input(1, 1, H, W))


def _dense_net(H: int, W: int, M: int, N: int) -> Workload:
    hidden = _hidden(H, W, M, N)
    layers = nn.Linear(H * W, hidden, bias=False), nn.ReLU(), nn.Linear(hidden, 3, bias=False)
    return _layer(nn.Sequential(*layers), _input(1, H * W))


def _hidden(H: int, W: int, M: int, N: int) -> int:
    _check_filter(H - 1, W - 1, M, N)
    return ((H - M + 1) // 2) * ((W - N + 1) // 2)


def _check_filter(H: int, W: int, M: int, N: int) -> None:
    if M > H or N > W:
        raise TiebreakError(f"a filter of {M} x {N} does not fit {H} x {W} pixels")


_LAYERS: Mapping[str, Callable[..., Workload]] = {
    "attention": _attention,
    "attention-causal": partial(_attention, causal=True),
    "attention-naive": _attention_naive,
    "taylor": _taylor,
    "taylor-causal": partial(_taylor, form="chunked"),
    "taylor-full": _taylor_full,
    "single-head": _heads,
    "multi-head": _heads,
    "bilinear": _bilinear,
    "pixels": _pixels,
    "conv2d": _conv2d,
    "linear": _linear,
    "lstm": _lstm,
    "rnn": _rnn,
    "graph": _graph,
    "conv-net": _conv_net,
    "dense-net": _dense_net,
}
