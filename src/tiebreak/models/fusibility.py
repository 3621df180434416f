"""Can a design's runs be trained as one computation? Checked before training, so that the plan can give the reason."""

from __future__ import annotations

import copy
import re
import warnings
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from tiebreak.errors import TiebreakError
from tiebreak.layers.gradient_hooks import hook_obstacle
from tiebreak.layers.mapped_forms import mapped_forms
from tiebreak.layers.rnn import use_plain_cells
from tiebreak.models.design import Shape, Words

FALLBACK = re.compile(r"batching rule for (aten::\w+)")  # torch's warning: an operation that it does run by run
MAX_LENGTH = 160  # characters of a reason
OWN_KIND = "as a base class, which torch cannot map over runs; use the layer itself"
REASONS = {  # a part of torch's message: what we tell the user
    "data-dependent control flow": "it decides by values of a tensor (`if`, `.item()`), which differ from run to run",
    "aten::lstm": f"it uses nn.LSTM {OWN_KIND}",
    "aten::rnn_": f"it uses nn.RNN {OWN_KIND}",
    "aten::gru": f"it uses nn.GRU {OWN_KIND}",
    "support the deepcopy protocol": "it keeps results of a forward pass, which cannot be copied",
    "being vmapped over but `self` not being": "it changes in place a tensor that all runs share, by numbers that"
    " differ from run to run; make that tensor from one of the run (`x.new_zeros`, `torch.zeros_like`)",
    "call Tensor.requires_grad_()": "it asks for a gradient by `requires_grad_` in its forward pass, not by"
    " torch.func.grad, which can be fused",
    "don't yet support saved tensor hooks": "it changes what is kept for the gradient, as torch.utils.checkpoint does",
    "random operation": "it draws random numbers from torch's generator, which no run could repeat; use nn.Dropout",
}


class _Place:
    """The layers that a forward pass is in, outermost first: when it raises, the last is the one that did."""

    def __init__(self, network: nn.Module) -> None:
        self._inside: list[str] = []
        for name, layer in network.named_modules():
            kind = type(layer).__name__
            layer.register_forward_pre_hook(partial(self._enter, f" (layer {name!r}, {kind})" if name else ""))
            layer.register_forward_hook(self._leave)

    def _enter(self, said: str, *_: Any) -> None:
        self._inside.append(said)

    def _leave(self, *_: Any) -> None:
        self._inside.pop()

    def __str__(self) -> str:
        return self._inside[-1] if self._inside else ""


def fusion_obstacle(network: nn.Module, shape: Shape) -> str:
    """The reason why two runs of the network cannot be fused, in one line; empty when they can. Trains nothing."""
    return fusion_limits(network, shape)[0]


def fusion_limits(network: nn.Module, shape: Shape) -> tuple[str, str]:
    """Why two runs cannot be fused, with the layer where that is known; and what is computed run by run if they are.

    Each in one line; empty where there is nothing to say. Trains nothing.
    """
    if obstacle := hook_obstacle(network):
        return obstacle, ""
    try:
        copies = [copy.deepcopy(network).train() for _ in range(2)]
    except Exception as error:  # the design may hold anything
        return explain_error(error), ""
    for each in copies:
        use_plain_cells(each, True)
    params, buffers = stack_module_state(copies)
    example = shape.inputs(1 if isinstance(shape, Words) else 2)  # an example of words is a batch in itself
    place, slow = _Place(copies[0]), dict[str, None]()

    def loss(params: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        return functional_call(copies[0], (params, buffers), example).square().mean()  # type: ignore[no-any-return]

    def note(message: Warning | str, *_: Any) -> None:
        if found := FALLBACK.search(str(message)):
            slow[f"{found[1]}{place}"] = None

    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]), mapped_forms():
            warnings.simplefilter("always")
            warnings.showwarning = note  # type: ignore[assignment]  # restored with the filters
            vmap(grad(loss))(params, buffers)
            with torch.no_grad():  # evaluation takes other kernels: recurrent layers of torch have no rule there
                copies[0].eval()
                vmap(loss)(params, buffers)
    except Exception as error:  # the design may raise anything
        return f"{explain_error(error)}{place}", ""
    return "", ", ".join(slow)


def explain_error(error: Exception) -> str:
    """The cause in one line: our text for a known limit of torch, else the first sentence of its message."""
    text = " ".join(str(error).split()).removeprefix("vmap: ")
    for mark, reason in REASONS.items():
        if mark in text:
            return reason
    if isinstance(error, TiebreakError):
        return text
    first = text.split(". ")[0]
    return f"{type(error).__name__}: {first if len(first) <= MAX_LENGTH else first[: MAX_LENGTH - 1].rstrip() + '…'}"
