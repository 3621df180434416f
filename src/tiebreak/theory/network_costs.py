"""Cost formulas of networks, added up from those of their layers, and the table of all formulas by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import sympy  # type: ignore[import-untyped]

from tiebreak.theory import symbolic
from tiebreak.theory.symbolic import Costs, Expr, Kernel, Nearest, conv2d, linear, max_pool, side, total


def conv_net(H: Expr, W: Expr, M: Expr, N: Expr) -> Costs:
    """M N + 3 floor((H - M + 1) / 2) floor((W - N + 1) / 2) parameters."""
    high, wide = side(H, M), side(W, N)
    hidden = sympy.floor(high / 2) * sympy.floor(wide / 2)
    one = sympy.Integer(1)
    return total(
        conv2d(one, H, W, one, Kernel(M, N), bias=False), max_pool(one, high, wide), linear(hidden, 3, bias=False)
    )


def dense_net(H: Expr, W: Expr, M: Expr, N: Expr) -> Costs:
    """(H W + 3) hidden parameters, hidden as in `conv_net`."""
    hidden = sympy.floor(side(H, M) / 2) * sympy.floor(side(W, N) / 2)
    both = total(linear(H * W, hidden, bias=False), linear(hidden, 3, bias=False))
    return Costs(*(sympy.collect(each, hidden) for each in both))


class CnnOptions(NamedTuple):
    """What the classifiers of `tiebreak.models.cnn` differ in: the first convolution, stride or pooling, width."""

    kernel: int = 3
    padding: int = 1
    stride: int = 1
    pool: bool = True
    hidden: int = 320


def cnn(C: Expr, H: Expr, W: Expr, Y: Expr, options: CnnOptions) -> Costs:
    """The classifiers of `tiebreak.models.cnn`: 8 and 16 filters, then `hidden`, 120 and Y units."""
    kernel, padding, stride, pool, hidden = options
    layers = [conv2d(C, H, W, 8, Kernel(kernel, kernel, stride, padding))]
    high, wide = side(H, kernel, stride, padding), side(W, kernel, stride, padding)
    if pool:
        layers.append(max_pool(8, high, wide))
        high, wide = sympy.floor(high / 2), sympy.floor(wide / 2)
    layers.append(conv2d(8, high, wide, 16, Kernel(3, 3, stride)))
    high, wide = side(high, 3, stride), side(wide, 3, stride)
    if pool:
        layers.append(max_pool(16, high, wide))
        high, wide = sympy.floor(high / 2), sympy.floor(wide / 2)
    return total(*layers, linear(16 * high * wide, hidden), linear(hidden, 120), linear(120, Y))


CNNS: Mapping[str, CnnOptions] = {
    "cnn-pool": CnnOptions(),
    "cnn-strided": CnnOptions(stride=2, pool=False),
    "cnn-pool-unpadded": CnnOptions(padding=0),
    "cnn-kuzushiji": CnnOptions(kernel=5, padding=2, hidden=600),
}


def mlp(C: Expr, H: Expr, W: Expr, Y: Expr, *, match: str = "cnn-pool") -> Costs:
    """`tiebreak.models.mlp`: hidden units are chosen to match the parameters of another design."""
    target, inputs = cnn(C, H, W, Y, CNNS[match]).parameters, C * H * W
    units = sympy.Max(1, Nearest((target - 120 - 121 * Y) / (inputs + 121)))
    return total(linear(inputs, units), linear(units, 120), linear(120, Y))


def attention_rows(C: Expr, H: Expr, W: Expr, Y: Expr, *, heads: int = 4) -> Costs:
    """`tiebreak.models.rows`: H rows of C W pixels, width 64."""
    d = sympy.Integer(64)
    embed, hidden = (_rows(H, linear(*sizes)) for sizes in ((C * W, d), (d, 2 * d)))
    positions = Costs(parameters=H * d)
    relu = Costs(activations=H * 2 * d)
    attended = symbolic.multi_head(H, d, sympy.Integer(heads))._replace(state=sympy.Integer(0))
    return total(embed, positions, attended, hidden, relu, linear(2 * d, Y))


def _rows(H: Expr, layer: Costs) -> Costs:
    """A layer applied to each of H rows."""
    return layer._replace(multiply_adds=H * layer.multiply_adds, activations=H * layer.activations)


COSTS: Mapping[str, Callable[..., Costs]] = {
    "attention": symbolic.attention,
    "attention-causal": symbolic.attention,
    "attention-naive": symbolic.attention_naive,
    "taylor": symbolic.taylor,
    "taylor-causal": symbolic.taylor_causal,
    "taylor-full": symbolic.taylor_full,
    "single-head": symbolic.single_head,
    "multi-head": symbolic.multi_head,
    "bilinear": symbolic.bilinear,
    "pixels": symbolic.pixels,
    "conv2d": lambda M, N, s, z, **sizes: conv2d(**sizes, kernel=Kernel(M, N, s, z)),
    "linear": linear,
    "lstm": symbolic.lstm,
    "rnn": symbolic.rnn,
    "graph": symbolic.graph,
    "conv-net": conv_net,
    "dense-net": dense_net,
    "mlp": mlp,
    "attention-rows": attention_rows,
    **{name: lambda options=options, **sizes: cnn(**sizes, options=options) for name, options in CNNS.items()},
}
