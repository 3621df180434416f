"""Can a design's runs be trained as one computation? Checked before training, so that the plan can give the reason."""

from __future__ import annotations

import inspect
import re
import traceback
import warnings
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from tiebreak.errors import TiebreakError
from tiebreak.layers.gradient_hooks import hook_obstacle
from tiebreak.layers.mapped_forms import mapped_forms
from tiebreak.layers.rnn import use_plain_cells
from tiebreak.models.design import Graph, Shape, Words
from tiebreak.models.users_lines import users_line

FALLBACK = re.compile(r"batching rule for (aten::\w+)")  # torch's warning: an operation that it does run by run
NO_RULE = re.compile(r"Batching rule not implemented for (aten::\w+(?:\.\w+)?)")  # its error: it cannot do that
MAX_LENGTH = 160  # characters of a reason
OWN_KIND = "as a base class or with a parametrization, which torch cannot map over runs; use the layer itself"
OWN_FUNCTION = (
    "its torch.autograd.Function cannot be mapped over runs; give it a `forward` without ctx, `setup_context` and"
    " `generate_vmap_rule = True`"
)
DECIDES = "it decides by values of a tensor (`if`, `.item()`), which differ from run to run"
COUNTS = (
    "it computes with as many numbers as values decide (`x[mask]`, `nonzero`, `unique`), which differs from run to run;"
    " use torch.where, or a product with the mask"
)
DECIDES_OR_COUNTS = f"{DECIDES}, or computes with as many numbers as they say (`x[mask]`, `nonzero`)"
SHARED = (
    "it changes in place a tensor that all runs share, by numbers that differ from run to run; make that tensor from"
    " one of the run (`x.new_zeros`, `torch.zeros_like`)"
)
REASONS = {  # a part of torch's message: what we tell the user
    "data-dependent control flow": DECIDES,
    "torch.allclose isn't supported": DECIDES,
    "support dynamic shape": COUNTS,
    "output dynamic shape": COUNTS,
    "DynamicOutputShapeException": COUNTS,
    "GuardOnDataDependentSymNode": DECIDES_OR_COUNTS,
    "doesn't have storage": "it leaves torch in its forward pass (`.numpy()`, `.tolist()`, `.data_ptr()`)",
    "inference tensor": "it uses torch.inference_mode in its forward pass; use torch.no_grad()",
    "for Sparse tensors": "it uses a sparse tensor, which torch cannot map over runs; use a dense one, or index_add",
    "aten::lstm": f"it uses nn.LSTM {OWN_KIND}",
    "aten::rnn_": f"it uses nn.RNN {OWN_KIND}",
    "aten::gru": f"it uses nn.GRU {OWN_KIND}",
    "it must override the setup_context": OWN_FUNCTION,
    "does not have vmap support": OWN_FUNCTION,
    "being vmapped over but `self` not being": SHARED,
    "doesn't match the broadcast shape": SHARED,
    "call Tensor.requires_grad_()": "it asks for a gradient by `requires_grad_` in its forward pass, not by"
    " torch.func.grad, which can be fused",
    "don't yet support saved tensor hooks": "it changes what is kept for the gradient, as torch.utils.checkpoint does",
    "random operation": "it draws random numbers from torch's generator, which no run could repeat; use"
    " nn.Dropout, torch.rand or bernoulli_",
}


def fusion_obstacle(build: Callable[[], nn.Module], shape: Shape) -> str:
    """The reason why two runs of the network cannot be fused, in one line; empty when they can. Trains nothing."""
    return fusion_limits(build, shape)[0]


def fusion_limits(
    build: Callable[[], nn.Module],
    shape: Shape,
    called: tuple[Callable[[nn.Module], nn.Module], tuple[Tensor, ...]] | None = None,
) -> tuple[str, str]:
    """Why two runs cannot be fused, with the layer where that is known; and what is computed run by run if they are.

    Each in one line; empty where there is nothing to say. Trains nothing. `build` makes the network, as for a run: one
    that was called before may hold what a fused one does not. `called`: what makes the module of it that is called, in
    place of the network, and two examples for that.
    """
    network = build().train()
    if obstacle := hook_obstacle(network):
        return obstacle, ""
    use_plain_cells(network, True)
    if called is None:
        example = shape.inputs(1 if isinstance(shape, Words) else 2)  # an example of words is a batch in itself
        whole = network
    else:
        whole, example = called[0](network), called[1]
    params, buffers = stack_module_state([whole, whole])
    of_run = 0 if not isinstance(shape, Graph) else None  # in training each run has a batch of its own, but one graph
    batches = example if of_run is None else tuple(torch.stack([each, each]) for each in example)
    slow = dict[str, None]()

    def loss(params: dict[str, Tensor], buffers: dict[str, Tensor], inputs: tuple[Tensor, ...]) -> Tensor:
        return functional_call(whole, (params, buffers), inputs).square().mean()  # type: ignore[no-any-return]

    def note(message: Warning | str, *_: Any) -> None:
        if found := FALLBACK.search(str(message)):
            callers = [frame for frame, _ in traceback.walk_stack(inspect.currentframe())]
            slow[f"{found[1]}{_place(network, reversed(callers))}"] = None

    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]), mapped_forms():
            warnings.simplefilter("always")
            warnings.showwarning = note  # type: ignore[assignment]  # restored with the filters
            vmap(grad(loss), in_dims=(0, 0, of_run))(params, buffers, batches)
            with torch.no_grad():  # evaluation takes other kernels: recurrent layers of torch have no rule there
                network.eval()
                vmap(loss, in_dims=(0, 0, None))(params, buffers, example)
    except Exception as error:  # the design may raise anything
        return explain_error(error, network), ""
    return "", ", ".join(slow)


def _place(network: nn.Module, frames: Iterable[FrameType]) -> str:
    """The last layer of the network that has one of the frames, outermost first; empty: none but the network itself."""
    names, said = {id(layer): name for name, layer in network.named_modules()}, ""
    for frame in frames:
        layer = frame.f_locals.get("self")
        if name := names.get(id(layer)):
            said = f" (layer {name!r}, {type(layer).__name__})"
    return said


def explain_error(error: Exception, network: nn.Module | None = None) -> str:
    """The cause in one line: our text for a known limit of torch, else the first sentence of its message.

    With the layer of the network that raised it, and the user's line.
    """
    frames = list(traceback.walk_tb(error.__traceback__))
    where = "" if network is None else f"{_place(network, (frame for frame, _ in frames))}{users_line(frames)}"
    return f"{_cause(error, [frame for frame, _ in frames])}{where}"


def _cause(error: Exception, frames: Iterable[FrameType] = ()) -> str:
    text = " ".join(str(error).split()).removeprefix("vmap: ")
    if isinstance(error, TiebreakError):
        return text
    for mark, reason in REASONS.items():
        if mark in f"{type(error).__name__} {text}":
            return reason
    if any("_higher_order_ops" in frame.f_code.co_filename for frame in frames):
        return "it uses torch.cond or another such operation, which torch cannot map over runs; use torch.where"
    if found := NO_RULE.search(text):
        return f"it uses {found[1]}, which torch has no form of for many runs"
    first = text.split(". ")[0].rstrip(" .:;")  # more follows
    first = first if len(first) <= MAX_LENGTH else first[: MAX_LENGTH - 1].rstrip() + "…"
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
