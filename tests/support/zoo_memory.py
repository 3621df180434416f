"""Users' networks that remember something from one pass to the next."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from support.zoo import WIDTH, Net, refused, trains


@trains()
class EmaRebound(Net):
    """The issue's example."""

    ema: Tensor

    def more(self) -> None:
        self.register_buffer("ema", torch.zeros(WIDTH))

    def middle(self, x: Any) -> Any:
        if self.training:
            self.ema = 0.9 * self.ema + 0.1 * x.detach().mean(dim=0)
        return F.relu(x - self.ema)


@trains()
class EmaInPlace(Net):
    ema: Tensor
    steps: Tensor

    def more(self) -> None:
        self.register_buffer("ema", torch.zeros(WIDTH))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def middle(self, x: Any) -> Any:
        if self.training:
            self.ema.mul_(0.9).add_(0.1 * x.detach().mean(dim=0))
            self.steps += 1
        return F.relu(x - self.ema.clone()) / (1 + 0.01 * self.steps)


@trains()
class ReadsItsMemory(Net):
    """The buffer is multiplied by a weight, so the weight's gradient is a product with what the buffer was."""

    memory: Tensor

    def more(self) -> None:
        self.register_buffer("memory", torch.linspace(-1, 1, WIDTH)[None])  # a view, as position codes often are
        self.recall = nn.Linear(WIDTH, WIDTH, bias=False)

    def middle(self, x: Any) -> Any:
        hidden = torch.tanh(x + self.recall(self.memory))
        if self.training:
            self.memory = 0.9 * self.memory + 0.1 * hidden.detach().mean(dim=0, keepdim=True)
        return hidden


@trains()
class LastWeights(Net):
    """The weights of the step before, kept in a buffer."""

    last: Tensor

    def more(self) -> None:
        self.register_buffer("last", torch.zeros(3, WIDTH))

    def forward(self, images: Tensor) -> Any:
        hidden = self.middle(self.inner(images.flatten(1)))
        found = self.out(hidden) + 0.5 * F.linear(hidden, self.last)
        if self.training:
            self.last = self.out.weight.detach()
        return found


@trains()
class DoubleBuffers(Net):
    """Buffers of other types than the parameters': float64 and whole numbers."""

    scale: Tensor
    order: Tensor

    def more(self) -> None:
        self.register_buffer("scale", torch.linspace(0.5, 1, WIDTH, dtype=torch.float64))
        self.register_buffer("order", torch.arange(WIDTH - 1, -1, -1))

    def middle(self, x: Any) -> Any:
        return F.relu(x[:, self.order]) * self.scale.to(x.dtype)


@trains()
class SpectralNorm(Net):
    def more(self) -> None:
        self.inner = spectral_norm(nn.Linear(36, WIDTH))


@trains()
class WeightNorm(Net):
    def more(self) -> None:
        self.inner = weight_norm(nn.Linear(36, WIDTH))


@trains()
class OldWeightNorm(Net):
    """The older way keeps the weight as a plain attribute, computed before every pass."""

    def more(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.inner = nn.utils.weight_norm(nn.Linear(36, WIDTH))


@trains()
class BatchNormCumulative(Net):
    def more(self) -> None:
        self.norm = nn.BatchNorm1d(WIDTH, momentum=None)

    def middle(self, x: Any) -> Any:
        return F.relu(self.norm(x))


@trains()
class ClampsWeights(Net):
    """Changes a parameter in place."""

    def middle(self, x: Any) -> Any:
        if self.training:
            with torch.no_grad():
                self.out.weight.clamp_(-0.2, 0.2)
        return F.relu(x)


@refused("'ema' in evaluation mode")
class EmaInEvaluation(Net):
    ema: Tensor

    def more(self) -> None:
        self.register_buffer("ema", torch.zeros(WIDTH))

    def middle(self, x: Any) -> Any:
        self.ema = 0.9 * self.ema + 0.1 * x.detach().mean(dim=0)
        return F.relu(x - self.ema)


@refused("'calls' is no registered buffer")
class CountsCalls(Net):
    calls = 0

    def middle(self, x: Any) -> Any:
        self.calls += self.training
        return x / (1 + self.calls)


@refused("'calls' changes from call to call")
class WarmsUp(Net):
    """The counter matters only later."""

    calls = 0

    def middle(self, x: Any) -> Any:
        self.calls += self.training
        return x if self.calls < 1000 else F.relu(x)


@refused("no registered buffer")
class CarriesHidden(Net):
    def more(self) -> None:
        self.hidden = torch.zeros(WIDTH)

    def middle(self, x: Any) -> Any:
        out = torch.tanh(x + self.hidden)
        if self.training:
            self.hidden = out.detach().mean(dim=0)
        return out


@refused("'mask' depends on the seed and is not registered")
class RandomMask(Net):
    """A random matrix that is no buffer: fused, all runs would have the first one's."""

    def more(self) -> None:
        self.mask = (torch.rand(WIDTH) > 0.5).float()

    def middle(self, x: Any) -> Any:
        return x * self.mask.to(x)


@refused("replaces parameter 'scale'")
class ReplacesParameter(Net):
    def more(self) -> None:
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def middle(self, x: Any) -> Any:
        out = x * self.scale
        if self.training:
            self.scale = nn.Parameter(self.scale.detach() * 0.9)
        return out


@refused("'total'")
class ChangesShape(Net):
    total: Tensor

    def more(self) -> None:
        self.register_buffer("total", torch.zeros(()))

    def middle(self, x: Any) -> Any:
        if self.training:
            self.total = self.total + x.detach().mean(dim=0)
        return F.relu(x)


@refused("'inner.weight' differs when the network is built again")
class UnseededStart(Net):
    def more(self) -> None:
        with torch.no_grad():
            self.inner.weight.copy_(torch.from_numpy(np.random.default_rng().normal(size=(WIDTH, 36))))


@refused("'scale' in evaluation mode")
class StartsFromTheFirstBatch(Net):
    """A normalisation that starts from the first batch it sees, which was that of a check."""

    def more(self) -> None:
        self.scale, self.ready = nn.Parameter(torch.ones(WIDTH)), False

    def middle(self, x: Any) -> Any:
        if not self.ready:
            self.scale.data.copy_(1 / (x.std(dim=0) + 0.1))
            self.ready = True
        return F.relu(x * self.scale)


@refused("'clock'")
class CountsInAnIterator(Net):
    def more(self) -> None:
        self.clock = itertools.count()

    def middle(self, x: Any) -> Any:
        return torch.tanh(x) if self.training and next(self.clock) > 100 else F.relu(x)
