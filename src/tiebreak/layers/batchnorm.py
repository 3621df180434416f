"""Batch normalisation as a pure function of input, parameters and buffers, so that it vmaps.

    y = (x - m) / sqrt(s + eps) * weight + bias
    m, s mean and biased variance of x over the rows that count and over space, per channel

x [B, C, ...]; m, s, weight, bias [C]. In evaluation m and s are the running statistics instead. Numbers, parameters and
buffers are those of nn.BatchNorm1d, 2d and 3d, with two differences. Training changes no buffer: the new running values
are left for `take_buffer_updates`, since vmap cannot write into what it maps over. And a partial batch is padded with
rows of weight 0, which must not count: the buffer `weights` holds the example weights [B] of the batch, or a single
number when all rows count. Its number of axes says which, before any value is known.

The loop sets `native` for batches that are full: torch's own kernel, which changes the buffers in place.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase

from tiebreak.errors import TiebreakError
from tiebreak.layers.buffer_updates import UpdatesBuffers
from tiebreak.layers.one_pass import Normalise
from tiebreak.layers.transforms import once_differentiated

KINDS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
Moments = tuple[Tensor, Tensor, Tensor, Tensor | float]
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class NotExamples(ValueError):
    """The rows of a batch that is padded are not its examples."""


class BatchNorm(UpdatesBuffers):
    """The layer, made from one of torch's: it takes over its parameters, buffers, eps, momentum and mode.

    `momentum` None averages all batches alike. Where torch's keeps no running statistics, the batch's own serve.
    """

    weight: nn.Parameter | None
    bias: nn.Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    weights: Tensor
    native = False
    one_pass = False
    full = False  # no batch of the data is padded

    def __init__(self, layer: _BatchNorm) -> None:
        super().__init__()
        self.eps, self.momentum = layer.eps, layer.momentum
        for name in ("weight", "bias"):
            self.register_parameter(name, getattr(layer, name))
        for name in STATISTICS:
            self.register_buffer(name, getattr(layer, name))
        self.prepare()
        self.train(layer.training)

    def prepare(self) -> None:
        """Add what torch's layer does not have."""
        self.register_buffer("weights", torch.tensor(1.0), persistent=False)
        # The statistics that the last forward left, and the running mean that it started from.
        self._updates: tuple[Tensor, dict[str, Tensor]] | None = None

    def forward(self, x: Tensor) -> Tensor:
        """x normalised. In training mode the new running statistics are left for `take_updates`."""
        if self.native and self.weights.ndim == 0:
            return self._native(x)
        if self.training and self.weights.ndim and self.running_mean is not None and self._takes_one_pass():
            return self._one_pass(x)
        if x.dtype == torch.bfloat16 and self.weights.dtype != torch.bfloat16:  # autocast: statistics stay float32
            return self.forward(x.to(self.weights.dtype)).to(x.dtype)
        shape = (-1,) + (1,) * (x.ndim - 2)  # of what belongs to a channel
        if self.running_mean is None or self.running_var is None:
            _, centred, variance, _ = self._moments(x, shape)
        elif self.training:
            mean, centred, variance, correction = self._moments(x, shape)
            self._move(self.running_mean, mean.detach(), (variance * correction).detach())
        else:
            centred, variance = x - self.running_mean.view(shape), self.running_var
        scale = (variance + self.eps).rsqrt()
        y = centred * (scale if self.weight is None else scale * self.weight).view(shape)
        return y if self.bias is None else y + self.bias.view(shape)

    def _takes_one_pass(self) -> bool:
        return self.one_pass and once_differentiated()  # a second derivative would miss its statistics

    def _native(self, x: Tensor) -> Tensor:
        """What `forward` computes where all rows count, by torch's kernel; running statistics change in place."""
        own = self.running_mean is None  # the batch's statistics, also in evaluation
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and not own:
            _check_size(x)
            assert self.num_batches_tracked is not None
            self.num_batches_tracked.add_(1)
            factor = 1.0 / float(self.num_batches_tracked) if self.momentum is None else factor
        statistics = self.running_mean, self.running_var
        return F.batch_norm(x, *statistics, self.weight, self.bias, self.training or own, factor, self.eps)

    def _moments(self, x: Tensor, shape: tuple[int, ...]) -> Moments:
        """Mean [C], x - mean, biased variance [C], and the factor that makes the variance unbiased."""
        axes = [axis for axis in range(x.ndim) if axis != 1]
        size = _check_size(x)
        if self.weights.ndim == 0:
            mean = x.mean(axes)
            centred = x - mean.view(shape)
            return mean, centred, centred.square().mean(axes), size / (size - 1)
        share, count = self._share(x, x.dtype)
        mean = (x * share).sum(axes)
        centred = x - mean.view(shape)
        # A single real value has no unbiased variance; 0 keeps NaN out of the running statistics.
        return mean, centred, (centred.square() * share).sum(axes), count / (count - 1).clamp(min=1)

    def _share(self, x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """What a value of each row counts [B, 1, ...], and how many values of a channel do."""
        if len(self.weights) == len(x):
            real = (self.weights != 0).to(dtype)
        elif self.full:
            real = torch.ones(len(x), dtype=dtype, device=x.device)
        else:
            raise NotExamples(
                f"batch normalisation of {len(x)} rows in a batch of {len(self.weights)} examples cannot tell which are"
                " padding; keep the examples on the first axis"
            )
        count = real.sum() * (_check_size(x) // len(x))
        return (real / count).view(-1, *(1,) * (x.ndim - 1)), count

    def _one_pass(self, x: Tensor) -> Tensor:
        """`forward` in training, in two passes over x instead of three, and as many backward."""
        assert self.running_mean is not None
        share, count = self._share(x, self.weights.dtype)
        start = self.running_mean
        weight = torch.ones_like(start) if self.weight is None else self.weight
        bias = torch.zeros_like(start) if self.bias is None else self.bias
        y, mean, variance = Normalise.apply(x, weight, bias, start, share, self.eps)  # type: ignore[no-untyped-call]
        self._move(start, mean.detach(), (variance * (count / (count - 1).clamp(min=1))).detach())
        return y  # type: ignore[no-any-return]

    def _move(self, start: Tensor, mean: Tensor, variance: Tensor) -> None:
        """Note the running statistics after a batch with this mean and unbiased variance, for `take_updates`."""
        # A layer called twice in one pass updates twice, as torch's does. The next pass starts from another tensor, or
        # after `take_updates`.
        again = self._updates is not None and self._updates[0] is start
        before = self._updates[1] if self._updates and again else {name: getattr(self, name) for name in STATISTICS}
        batches = before["num_batches_tracked"] + 1
        factor = 1 / batches.to(mean.dtype) if self.momentum is None else self.momentum
        after = {
            "running_mean": before["running_mean"] * (1 - factor) + mean * factor,
            "running_var": before["running_var"] * (1 - factor) + variance * factor,
            "num_batches_tracked": batches,
        }
        self._updates = start, after

    def take_updates(self) -> dict[str, Tensor]:
        """The running statistics after the last forward in training mode."""
        found, self._updates = self._updates, None
        return {} if found is None else found[1]


def _check_size(x: Tensor) -> int:
    """How many values a channel has; refuses one, whose variance is 0."""
    size = x.numel() // x.shape[1]
    if size == 1:
        raise ValueError("batch normalisation needs more than one value per channel; use larger batches")
    return size


def batchnorms(network: nn.Module) -> dict[str, BatchNorm]:
    """The layers of a network by their full names."""
    return {name: layer for name, layer in network.named_modules() if isinstance(layer, BatchNorm)}


def expect_full_batches(network: nn.Module, full: bool) -> None:
    """Say whether every batch to come is full, so that weights tell nothing that is not known."""
    for layer in batchnorms(network).values():
        layer.full = full


def weigh_rows(network: nn.Module, weights: Tensor | None, *, native: bool = False) -> None:
    """Set the example weights [B] of the next batch in every layer; None: all rows count.

    `native`: torch's kernel may change the buffers in place, as it does outside of vmap.
    """
    for layer in batchnorms(network).values():
        old = layer.weights  # perhaps of a traced pass: what it was made of is gone, so no operation may take it
        layer.weights = torch.ones((), dtype=old.dtype, device=old.device) if weights is None else weights
        layer.native = native


def swap_batchnorm(network: nn.Module) -> None:
    """Turn every `nn.BatchNorm1d`, 2d and 3d into ours, in place, with its parameters and buffers.

    Relatives that would change their buffers in place are refused: vmap cannot do that.
    """
    for name, layer in list(network.named_modules()):
        if type(layer) in KINDS:
            layer.__class__ = BatchNorm  # the object stays, with its parameters, buffers, names and hooks
            assert isinstance(layer, BatchNorm)
            layer.prepare()
        elif isinstance(layer, _NormBase) and (isinstance(layer, _BatchNorm) or layer.track_running_stats):
            raise TiebreakError(
                f"{name or 'the network'} is an nn.{type(layer).__name__}, whose running statistics cannot be kept per"
                " run; use nn.BatchNorm1d, 2d or 3d, or a normalisation without running statistics"
            )
