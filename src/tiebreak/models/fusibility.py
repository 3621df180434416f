"""Can a design's runs be trained as one computation? Asked before training, so that the plan can say why not."""

from __future__ import annotations

import copy
import warnings

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap

from tiebreak.layers.rnn import use_plain_cells
from tiebreak.models.design import Shape, Words

LONGEST = 160  # letters of a reason
KNOWN = {  # in torch's words: in ours
    "data-dependent control flow": "it decides by values of a tensor (`if`, `.item()`), which differ from run to run",
    "aten::lstm": "it uses nn.LSTM, which torch cannot map over runs; use tiebreak.layers.lstm.Lstm",
    "aten::rnn_": "it uses nn.RNN, which torch cannot map over runs; use tiebreak.layers.rnn.Rnn",
    "aten::gru": "it uses nn.GRU, which torch cannot map over runs",
    "random operation": "it draws random numbers from torch's generator, which no run could repeat; use nn.Dropout",
}


def why_not(network: nn.Module, shape: Shape) -> str:
    """Why two runs of the network cannot be fused: one line, or nothing when they can. Trains nothing."""
    copies = [copy.deepcopy(network).train() for _ in range(2)]
    for each in copies:
        use_plain_cells(each, True)
    params, buffers = stack_module_state(copies)
    example = shape.inputs(1 if isinstance(shape, Words) else 2)  # an example of words is a batch in itself

    def loss(params: dict[str, Tensor], buffers: dict[str, Tensor]) -> Tensor:
        return functional_call(copies[0], (params, buffers), example).square().mean()  # type: ignore[no-any-return]

    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")  # slow fallbacks are the business of the measurement
            vmap(grad(loss))(params, buffers)
            with torch.no_grad():  # evaluation takes other kernels: recurrent layers of torch have no rule there
                copies[0].eval()
                vmap(loss)(params, buffers)
    except Exception as error:  # theirs, whatever it is
        return in_words(error)
    return ""


def in_words(error: Exception) -> str:
    """The cause in one line: in our words where torch's are many, else the first sentence of torch's."""
    text = " ".join(str(error).split()).removeprefix("vmap: ")
    for mark, reason in KNOWN.items():
        if mark in text:
            return reason
    first = text.split(". ")[0]
    return f"{type(error).__name__}: {first if len(first) <= LONGEST else first[: LONGEST - 1].rstrip() + '…'}"
