"""Random numbers that a network draws by functions: `F.dropout`, the dropout of attention weights, `torch.rand`, …

These functions draw from torch's global generator, whose state depends on what ran before. While a network with
`key_functions` is in a forward pass in training mode, a `TorchFunctionMode` computes them with hashed masks instead, as
`dropout` does, or from hashed numbers (`keyed_draws`): the key is that of one hidden layer, and every call in a pass
draws its own. So they are the same alone, under vmap, in a traced step and after a resume.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tiebreak.layers.dropout import Keyed, apart, mask_like, masked
from tiebreak.layers.keyed_draws import DRAWS, shape_of

HIDDEN = "tiebreak_draws"  # the name of the hidden layer: none that a user would give to one of his own
_attention = F.scaled_dot_product_attention
_multi_head = F.multi_head_attention_forward


class FunctionKey(Keyed):
    """The hidden layer that holds the key. In an `nn.Sequential` it is called, and changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.modes: list[KeyedFunctions | None] = []

    def forward(self, x: Tensor) -> Tensor:
        """The input."""
        return x


class KeyedFunctions(TorchFunctionMode):
    """Computes functions that draw with a layer's key. `count` tells how many were called."""

    def __init__(self, layer: Keyed) -> None:
        super().__init__()
        self.layer, self.count = layer, 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if (own := _FUNCTIONS.get(func)) is not None:
            return own(self, *args, **given)
        if (draw := DRAWS.get(func)) is not None and given.get("generator") is None and given.get("out") is None:
            self.count += 1
            more = {name: value for name, value in given.items() if name not in ("generator", "out")}
            if (found := draw(self.layer.next_key(), *args, **more)) is not NotImplemented:
                return found
        return func(*args, **given)

    def dropout(self, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        """`F.dropout`."""
        self.count += 1
        if not training:
            return input
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        if p == 0:  # a mask of ones; the calls that follow keep their keys
            self.layer.count_call()
            return input
        return masked(input, mask_like(input, input.shape, p, self.layer.next_key()), inplace)

    def empty(self, *size: Any, **given: Any) -> Tensor:
        """`torch.empty`, to be filled with random numbers: a tensor of the run, so that each can have its own."""
        if given.keys() - {"size", "dtype", "device"}:
            return torch.empty(*size, **given)
        dtype, device = given.get("dtype"), given.get("device")
        return self._of_run(
            shape_of(given.get("size", size)),
            torch.get_default_dtype() if dtype is None else dtype,
            torch.get_default_device() if device is None else device,
        )

    def new(self, like: Tensor, *size: Any, **given: Any) -> Tensor:
        """`x.new(2, 3)`, `x.new(torch.Size(…))`, as some of `torch.distributions` do; a list would be values."""
        if given or not size or not all(isinstance(each, int | torch.Size) for each in size):
            return like.new(*size, **given)
        return self._of_run(shape_of(size), like.dtype, like.device)

    def _of_run(self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        return apart(self.layer.key).new_empty(shape, dtype=dtype, device=device)

    def plain_dropout(self, input: Tensor, p: float, train: bool) -> Tensor:
        """`torch.dropout`."""
        return self.dropout(input, p, train)

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """`F.scaled_dot_product_attention`; with dropout, the formula as its documentation gives it."""
        if dropout_p == 0:
            return _attention(query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)
        if is_causal and attn_mask is not None:
            raise RuntimeError("scaled_dot_product_attention: attn_mask should not be set when is_causal=True")
        if enable_gqa:
            key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) for each in (key, value))
        query, key, value = rounded_operands(query, key, value)
        with torch.autocast(query.device.type, enabled=False):  # under vmap it would act below the gradient
            scores = query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
            if is_causal:
                seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
                scores = scores.masked_fill(~seen, -torch.inf)
            weights = scores.softmax(dim=-1) if attn_mask is None else _softmax_of_seen(_masked(scores, attn_mask))
            return self.dropout(weights, dropout_p).to(value.dtype) @ value

    def multi_head(self, *args: Any, **kwargs: Any) -> Any:
        """`F.multi_head_attention_forward`, the function behind `nn.MultiheadAttention`."""
        with _replaced(dropout=self.dropout, scaled_dot_product_attention=self.attention):
            return _multi_head(*args, **kwargs)


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    """Scores with a mask applied: True where a key may be looked at, or numbers to add."""
    return scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask.to(scores.dtype)


def _softmax_of_seen(scores: Tensor) -> Tensor:
    """A softmax that is 0 where a query may look at no key, as torch's attention has it; its gradient is too."""
    blind = (scores == -torch.inf).all(dim=-1, keepdim=True)
    return scores.masked_fill(blind, 0.0).softmax(dim=-1).masked_fill(blind, 0.0)


def rounded_operands(*operands: Tensor) -> tuple[Tensor, ...]:
    """In the type that autocast would round the operands of a product to, where it is on."""
    kind = operands[0].device.type
    if not torch.is_autocast_enabled(kind):
        return operands
    return tuple(each.to(torch.get_autocast_dtype(kind)) for each in operands)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    F.dropout: KeyedFunctions.dropout,
    torch.dropout: KeyedFunctions.plain_dropout,
    torch.empty: KeyedFunctions.empty,
    Tensor.new: KeyedFunctions.new,
    _attention: KeyedFunctions.attention,
    _multi_head: KeyedFunctions.multi_head,
}


@contextmanager
def _replaced(**functions: Any) -> Iterator[None]:
    """Replace functions of `torch.nn.functional`: no mode sees what one function of that module calls of another."""
    before = {name: getattr(F, name) for name in functions}
    try:
        for name, function in functions.items():
            setattr(F, name, function)
        yield
    finally:
        for name, function in before.items():
            setattr(F, name, function)


def key_functions(network: nn.Module) -> None:
    """Compute the functions by which the network draws in training with a key from now on."""
    network.add_module(HIDDEN, FunctionKey())
    network.register_forward_pre_hook(_enter, prepend=True)
    network.register_forward_hook(_leave, always_call=True)


def _enter(network: nn.Module, args: Any) -> None:
    layer = network.get_submodule(HIDDEN)
    assert isinstance(layer, FunctionKey)
    mode = KeyedFunctions(layer) if network.training else None
    layer.modes.append(mode)
    if mode is not None:
        mode.__enter__()  # type: ignore[no-untyped-call]


def _leave(network: nn.Module, args: Any, output: Any) -> None:
    layer = network.get_submodule(HIDDEN)
    assert isinstance(layer, FunctionKey)
    mode = layer.modes.pop()
    if mode is not None:
        mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
