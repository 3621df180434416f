"""Probes of a network before training: whether it uses its input and its parameters, and mixes examples.

One that ignores its input still trains, and gives the most frequent answers. One that ignores its parameters cannot.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from tiebreak.layers.batchnorm import BatchNorm, NotExamples, batchnorms, weigh_rows
from tiebreak.layers.dropout import dropouts, keyed, restart_calls
from tiebreak.models.design import Graph, Shape, Words
from tiebreak.models.own_shape import Tensors

ROWS = 2
PADDED = 8  # rows of a batch that is padded
DRAWS = 4  # of a network that draws: which rows it mixes may be drawn too


def ignores_input(network: nn.Module, shape: Shape) -> bool:
    """Whether the outputs for different inputs (pixels, symbols, sound, node features) are equal bit for bit."""
    inputs = list(shape.inputs(ROWS))
    place = 2 if isinstance(shape, Graph) else 0  # of a graph, the values of the features
    one = inputs[place]
    if isinstance(shape, Tensors) and not one.is_floating_point():
        return False  # how many symbols there are is not known
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            outputs = [network(*inputs[:place], each, *inputs[place + 1 :]) for each in (one, *_unlike(one, shape))]
    except (IndexError, RuntimeError, ValueError):
        return False  # whole numbers that it does not take, as lengths of 0
    finally:
        network.train(was_training)
    return all(torch.equal(outputs[0], each) for each in outputs[1:])


def _unlike(values: Tensor, shape: Shape) -> list[Tensor]:
    """Other values that the network takes, small and large ones, or symbols: the first may be padding to it."""
    if values.is_floating_point():
        draws = torch.Generator().manual_seed(0)
        return [torch.rand(values.shape, generator=draws), 10 * torch.randn(values.shape, generator=draws)]
    symbols = next((getattr(shape, name) for name in ("words", "sources", "symbols") if hasattr(shape, name)), 2)
    return [(torch.arange(values.numel()) % many).reshape(values.shape) for many in (2, symbols)]


def ignores_parameters(network: nn.Module, shape: Shape) -> bool:
    """Whether no gradient leads from the output to any parameter, so that there is nothing to train."""
    with torch.enable_grad():
        output = network(*shape.inputs(1 if isinstance(shape, Words) else ROWS))
    return not output.requires_grad


def mixes_rows(network: nn.Module, shape: Shape, *, training: bool = True) -> bool:
    """Whether the output for one example, or a buffer, depends on the others of its batch: statistics over the batch.

    Batch normalisation layers are left out: ours do not count the rows that fill up a batch.
    """
    if isinstance(shape, Graph | Words):
        return False
    if training and any(getattr(layer, "scale_grad_by_freq", False) for layer in network.modules()):
        return True  # an embedding that counts the words of the batch
    inputs = shape.inputs(ROWS + 1)
    if inputs[0].is_floating_point():
        noise = torch.Generator().manual_seed(0)
        one, other = (torch.rand(inputs[0].shape, generator=noise) for _ in range(2))
    else:
        one, other = inputs[0], torch.zeros_like(inputs[0])
    other[0] = one[0]

    def first_row(values: Tensor, draw: int) -> list[Tensor]:
        trained = copy.deepcopy(network).train(training)
        for layer in trained.modules():
            if isinstance(layer, BatchNorm):
                layer.eval()
        for layer in keyed(trained).values():
            layer.key.fill_(draw)
        restart_calls(trained)
        with torch.no_grad():
            output = trained(values, *inputs[1:])[0]
        return [output, *(each.to(output.dtype) for each in trained.buffers())]

    try:
        draws = range(DRAWS if training and keyed(network) else 1)
        pairs = [pair for draw in draws for pair in zip(first_row(one, draw), first_row(other, draw), strict=True)]
        return not all(torch.allclose(each, again, rtol=1e-4, atol=1e-6, equal_nan=True) for each, again in pairs)
    except Exception:  # it may raise anything, in training mode or when it is copied: training will say so
        return False


def flattens_rows(network: nn.Module, shape: Shape) -> bool:
    """Whether batch normalisation gets rows that are not the examples in their order: padding is taken for others."""
    if isinstance(shape, Graph | Words) or not batchnorms(network):
        return False
    noise = torch.Generator().manual_seed(0)
    one, other = [], []
    for each in shape.inputs(PADDED):
        values = torch.rand(each.shape, generator=noise) if each.is_floating_point() else each
        one.append(values)
        other.append(1 - values if each.is_floating_point() else torch.zeros_like(values))

    def same_without(padding: Tensor) -> bool:
        """Whether the outputs of the other rows are the same whatever is in those of the padding."""

        def call(inputs: list[Tensor]) -> Tensor:
            trained = copy.deepcopy(network).train()
            weigh_rows(trained, (~padding).float())
            restart_calls(trained)
            with torch.no_grad():
                return trained(*inputs)[~padding]  # type: ignore[no-any-return]

        mixed = [torch.where(padding.view(-1, *[1] * (b.ndim - 1)), b, a) for a, b in zip(one, other, strict=True)]
        found, changed = call(one), call(mixed)
        known = found.isfinite() & changed.isfinite()  # padding of zeros may divide by zero
        return torch.allclose(found[known], changed[known], rtol=1e-4, atol=1e-6)

    try:
        return not all(same_without(torch.arange(PADDED) >= real) for real in (3, PADDED - 1))
    except NotExamples:
        return True
    except Exception:  # it may raise anything in training mode: training will say so
        return False


def dropout_layers(network: nn.Module) -> int:
    """How many dropout layers a study can set the rate of."""
    return len(dropouts(network))
