"""Networks that call functions which torch computes run by run under vmap, or cannot map at all."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from support.zoo import WIDTH, Net, trains


def _tokens(x: Tensor) -> Tensor:
    """Three words by sign and size."""
    return (x > 0).long() + (x > 1).long()


@trains()
class OneHot(Net):
    """A codebook that is kept by averages, as in vector quantisation."""

    def more(self) -> None:
        self.sums: Tensor
        self.register_buffer("sums", torch.zeros(WIDTH))

    def middle(self, x: Any) -> Any:
        chosen = F.one_hot(x.argmax(dim=1), WIDTH).to(x.dtype)
        if self.training:
            self.sums.add_(chosen.sum(dim=0))
        return x * chosen + x.tanh()


@trains()
class SetsByMask(Net):
    def middle(self, x: Any) -> Any:
        y = x * 1.0
        y[y < 0] = 0.1
        y[x[:, 0] > 1] = x.detach().max()
        return y


@trains()
class InPlaceWithoutRules(Net):
    def middle(self, x: Any) -> Any:
        y = (x * 1.0).clamp_(-1.0, 1.0).lerp_(x, 0.3)
        return y.addcmul_(x, x, value=0.1).view(-1, 2, WIDTH // 2).tril_().flatten(1)


@trains()
class Bags(Net):
    def more(self) -> None:
        self.sum = nn.EmbeddingBag(3, WIDTH, mode="sum")
        self.mean = nn.EmbeddingBag(3, WIDTH, padding_idx=0)
        self.max = nn.EmbeddingBag(3, WIDTH, mode="max", padding_idx=-3)

    def middle(self, x: Any) -> Any:
        words = _tokens(x)
        return x + self.sum(words, per_sample_weights=x) + self.mean(words) + self.max(words)


@trains()
class TwoInputs(Net):
    def more(self) -> None:
        self.both = nn.Bilinear(WIDTH, WIDTH, WIDTH)

    def middle(self, x: Any) -> Any:
        return self.both(x, x.tanh())


@trains()
class Quantiles(Net):
    def middle(self, x: Any) -> Any:
        return x - x.quantile(0.3, dim=1, keepdim=True)


@trains()
class SlopeByJvp(Net):
    """A forward derivative of a part with layer normalisation."""

    def more(self) -> None:
        self.part = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Tanh())

    def middle(self, x: Any) -> Any:
        found: Any = torch.func.jvp(self.part, (x,), (torch.ones_like(x),))
        return found[0] + found[1]


@trains()
class MatrixByVector(Net):
    def more(self) -> None:
        self.weight, self.vector = nn.Parameter(torch.rand(WIDTH, 3)), nn.Parameter(torch.rand(3))

    def middle(self, x: Any) -> Any:
        return F.relu(x + self.weight.mv(self.vector) + torch.mv(x, self.weight[:, 0]).unsqueeze(1))


@trains()
class WhereItLies(nn.Module):
    """Channels last, as recipes for convolutions have it."""

    def __init__(self, shape: Any) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv2d(1, 4, 3), nn.Linear(4, shape.classes)

    def forward(self, images: Any) -> Any:
        x = self.conv(images.to(memory_format=torch.channels_last)).to(images.dtype, memory_format=torch.channels_last)
        x = F.relu(x).contiguous(memory_format=torch.channels_last).clone(memory_format=torch.contiguous_format)
        return self.out(x.contiguous().mean(dim=(2, 3)))


@trains()
class ScalarParameter(Net):
    def more(self) -> None:
        self.scale = nn.Parameter(torch.tensor(0.5))

    def middle(self, x: Any) -> Any:
        return F.relu(x) * self.scale.exp() + torch.zeros_like(x, memory_format=torch.contiguous_format)


@trains()
class LikelihoodInside(Net):
    """A loss that looks at its variances, to refuse negative ones."""

    def middle(self, x: Any) -> Any:
        return x + F.gaussian_nll_loss(x, torch.ones_like(x), x.square() + 0.1, full=True, reduction="none")
