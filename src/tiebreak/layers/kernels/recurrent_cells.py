"""One step of a recurrent cell in a kernel: numbers in, numbers out. The formulas are those of `recurrent_scan`."""

from __future__ import annotations

import triton
import triton.language as tl

# ruff: noqa: PLR0913, PLR0917  (Triton takes no structures)
TANH, RELU, SIGMOID, LSTM, GRU = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3), tl.constexpr(4)


@triton.jit
def tanh(x):
    """The hyperbolic tangent."""
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def times(a, b, total, HOW: tl.constexpr):
    """total + a b, in the precision HOW."""
    if HOW == "bf16":
        total = tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), total)
    elif HOW == "bf16 interpreted":  # the interpreter multiplies the bits of such numbers
        a, b = a.to(tl.bfloat16).to(tl.float32), b.to(tl.bfloat16).to(tl.float32)
        total = tl.dot(a, b, total, input_precision="ieee")
    else:
        total = tl.dot(a, b, total, input_precision=HOW)
    return total


@triton.jit
def plain(total, KIND: tl.constexpr):
    """The state of a simple cell after a step."""
    return tanh(total) if KIND == TANH else tl.maximum(total, 0.0) if KIND == RELU else tl.sigmoid(total)


@triton.jit
def plain_gradient(above, new, real, KIND: tl.constexpr):
    """The gradient before the nonlinearity."""
    slope = 1 - new * new if KIND == TANH else new * (1 - new)
    if KIND == RELU:
        slope = tl.where(new > 0, 1.0, 0.0)
    return tl.where(real, above * slope, 0.0)


@triton.jit
def lstm(first, second, third, fourth, memory):
    """The four gates, the memory and the state after a step."""
    enter, keep, fresh, show = tl.sigmoid(first), tl.sigmoid(second), tanh(third), tl.sigmoid(fourth)
    changed = keep * memory + enter * fresh
    return enter, keep, fresh, show, changed, show * tanh(changed)


@triton.jit
def lstm_gradient(above, changed, memory, enter, keep, fresh, show, later, real):
    """The gradients of the gates before their nonlinearity, and of the memory before the step."""
    bent = tanh(changed)
    inner = later + above * show * (1 - bent * bent)
    first = tl.where(real, inner * fresh * enter * (1 - enter), 0.0)
    second = tl.where(real, inner * memory * keep * (1 - keep), 0.0)
    third = tl.where(real, inner * enter * (1 - fresh * fresh), 0.0)
    fourth = tl.where(real, above * bent * show * (1 - show), 0.0)
    return first, second, third, fourth, tl.where(real, inner * keep, later)


@triton.jit
def gru(first, second, given, own, old):
    """The three gates and the state after a step; the reset gate acts on `own`."""
    reset, keep = tl.sigmoid(first), tl.sigmoid(second)
    fresh = tanh(given + reset * own)
    return reset, keep, fresh, fresh + keep * (old - fresh)


@triton.jit
def gru_gradient(above, old, reset, keep, fresh, own, real):
    """The gradients of the gates before their nonlinearity: reset, keep, fresh, and fresh's of the state's part."""
    inner = tl.where(real, above * (1 - keep) * (1 - fresh * fresh), 0.0)
    first = inner * own * reset * (1 - reset)
    second = tl.where(real, above * (old - fresh) * keep * (1 - keep), 0.0)
    return first, second, inner, inner * reset
