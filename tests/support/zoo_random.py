"""Users' networks with dropout and other random numbers, and with one layer in several places."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from support.zoo import WIDTH, Net, refused, trains
from tiebreak.models.design import Images


@trains()
class SharedLayer(Net):
    def more(self) -> None:
        self.first = self.second = nn.Linear(WIDTH, WIDTH)

    def middle(self, x: Any) -> Any:
        return self.second(F.relu(self.first(x)))


@trains()
class TiedWeights(Net):
    def more(self) -> None:
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.down.weight = self.up.weight

    def middle(self, x: Any) -> Any:
        return self.down(torch.tanh(self.up(x)))


@trains()
class TransposedTie(Net):
    def middle(self, x: Any) -> Any:
        return F.linear(torch.tanh(self.out(x)), self.out.weight.T)


@trains(draws=True)
class OneDropoutThrice(Net):
    def more(self) -> None:
        self.drop = nn.Dropout(0.4)

    def middle(self, x: Any) -> Any:
        return self.drop(F.relu(self.drop(F.relu(self.drop(x)))))


@trains(draws=True)
class DropoutOfTwoNames(Net):
    def more(self) -> None:
        self.one = self.two = nn.Dropout(0.4)
        self.block = nn.Sequential(nn.ReLU(), self.one)

    def middle(self, x: Any) -> Any:
        return self.two(self.block(self.one(x)))


@trains(draws=True)
class DropoutInAList(Net):
    """A plain list holds the layer that a name holds too."""

    def more(self) -> None:
        self.drop = nn.Dropout(0.4)
        self.steps: list[Any] = [nn.ReLU(), self.drop, torch.tanh, self.drop]

    def middle(self, x: Any) -> Any:
        for step in self.steps:
            x = step(x)
        return x


@trains()
class SharedBatchNorm(Net):
    def more(self) -> None:
        self.norm = self.again = nn.BatchNorm1d(WIDTH)

    def middle(self, x: Any) -> Any:
        return self.again(F.relu(self.norm(x)))


@trains(draws=True)
class FunctionalDropout(Net):
    def middle(self, x: Any) -> Any:
        return F.dropout(F.relu(F.dropout(x, 0.3, self.training)), 0.5, training=self.training)


@trains(draws=True)
class FunctionalAndLayer(Net):
    def more(self) -> None:
        self.drop = nn.Dropout(0.2, inplace=True)

    def middle(self, x: Any) -> Any:
        x = 2 * x
        self.drop(x)
        return F.dropout(x, 0.3, self.training)


@trains(draws=True)
def sequential_with_function(shape: Images) -> nn.Module:
    class Function(nn.Module):
        def forward(self, x: Any) -> Any:
            return F.dropout(x, 0.3, self.training)

    return nn.Sequential(nn.Flatten(), Function(), nn.Linear(36, shape.classes))


@trains(draws=True)
class StochasticDepth(Net):
    """Whole residual branches are left out, by dropout of ones."""

    def more(self) -> None:
        self.branch = nn.Linear(WIDTH, WIDTH)

    def middle(self, x: Any) -> Any:
        return x + F.dropout(torch.ones_like(x[:, :1]), 0.3, self.training) * F.relu(self.branch(x))


@trains(draws=True)
class DropsEverything(Net):
    def more(self) -> None:
        self.drop = nn.Dropout(1.0)

    def middle(self, x: Any) -> Any:
        return x + self.drop(x)


@trains(draws=True)
class StochasticDepthByRand(Net):
    class Branch(nn.Module):
        def forward(self, x: Any) -> Any:
            return F.relu(x) * (torch.rand(len(x), 1) > 0.2) if self.training else F.relu(x)

    def more(self) -> None:
        self.branch = self.Branch()

    def middle(self, x: Any) -> Any:
        return x + self.branch(x)


@trains(draws=True)
class Noise(Net):
    def middle(self, x: Any) -> Any:
        return x + 0.1 * torch.randn_like(x) if self.training else x


@trains(draws=True)
class BernoulliInPlace(Net):
    def middle(self, x: Any) -> Any:
        return x * torch.empty_like(x).bernoulli_(0.5) if self.training else x


@trains(draws=True)
class Permutes(Net):
    def middle(self, x: Any) -> Any:
        return x[:, torch.randperm(WIDTH)] if self.training else x


@refused("in training, at zoo_random.py:")
class DrawsNumpy(Net):
    def middle(self, x: Any) -> Any:
        return x * float(np.random.rand()) if self.training else x  # noqa: NPY002


@refused("generator of Python")
class DrawsPython(Net):
    def middle(self, x: Any) -> Any:
        return x if self.training and random.random() < 0.5 else 2 * x


@refused("generator of torch in evaluation, at zoo_random.py:")
class DropsInEvaluation(Net):
    def middle(self, x: Any) -> Any:
        return F.dropout(x, 0.5)


@trains(draws=True)
class ChannelDropout(Net):
    def more(self) -> None:
        self.drop = nn.Dropout2d(0.5)

    def middle(self, x: Any) -> Any:
        return self.drop(x.view(len(x), 4, 2, 1)).flatten(1)


@trains(draws=True)
class SelfNormalising(Net):
    def more(self) -> None:
        self.drop = nn.AlphaDropout(0.5)

    def middle(self, x: Any) -> Any:
        return self.drop(F.selu(x))


@trains(draws=True)
class RandomSlope(Net):
    def more(self) -> None:
        self.act = nn.RReLU()

    def middle(self, x: Any) -> Any:
        return self.act(x)


@trains(draws=True)
class DropPath(Net):
    """As libraries of image networks write it, in both ways."""

    class Path(nn.Module):
        def forward(self, x: Any) -> Any:
            if not self.training:
                return x
            kept = x.new_empty(x.shape[0], 1).bernoulli_(0.8)
            kept.div_(0.8)
            noise = torch.empty([x.shape[0], 1], dtype=x.dtype, device=x.device)
            noise = noise.bernoulli_(0.5)
            return x * kept * noise.div_(0.5)

    def more(self) -> None:
        self.path, self.branch = self.Path(), nn.Linear(WIDTH, WIDTH)

    def middle(self, x: Any) -> Any:
        return x + self.path(F.relu(self.branch(x)))


@trains(draws=True)
class Latent(Net):
    """Samples of a normal and of a categorical distribution, with gradients."""

    def more(self) -> None:
        self.spread = nn.Linear(WIDTH, WIDTH)

    def middle(self, x: Any) -> Any:
        if not self.training:
            return x
        scale = F.softplus(self.spread(x))
        sample = torch.distributions.Normal(x, scale).rsample()
        return sample + F.gumbel_softmax(x, tau=0.7, hard=True)


@trains(draws=True)
class DropsPixels(Net):
    """It fills a tensor made from its input, which is the run's own batch."""

    def forward(self, images: Any) -> Any:
        kept = images.new_empty(len(images), 1, 1, 6).bernoulli_(0.8) / 0.8 if self.training else 1.0
        return self.out(torch.tanh(self.inner((images * kept).flatten(1))))


@trains(draws=True)
class LaplaceNoise(Net):
    """By `Tensor.new`, as some of torch.distributions draw."""

    def middle(self, x: Any) -> Any:
        if not self.training:
            return x
        return torch.distributions.Laplace(x, 0.1).rsample() + torch.distributions.Exponential(2.0).sample(x.shape)


@trains(draws=True)
class NoisePerRow(Net):
    def middle(self, x: Any) -> Any:
        if not self.training:
            return x
        noisy = torch.func.vmap(lambda row: row + torch.randn_like(row), randomness="different")(x)
        gradient = torch.func.grad(lambda row: (row * torch.rand_like(row)).square().sum())
        return noisy + torch.func.vmap(gradient, randomness="different")(x)


@refused("layer 'noise', Noisy, draws random numbers from the generator of torch")
class Cauchy(Net):
    class Noisy(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + torch.empty_like(x).cauchy_() if self.training else x

    def more(self) -> None:
        self.noise = self.Noisy()

    def middle(self, x: Any) -> Any:
        return self.noise(x)


@refused("seeds torch's generator (torch.manual_seed) in training")
class Seeds(Net):
    def middle(self, x: Any) -> Any:
        if not self.training:
            return x
        torch.manual_seed(0)
        return x + torch.randn_like(x)


@refused("'mask' is set in one step and used in later ones")
class KeepsItsMask(Net):
    def middle(self, x: Any) -> Any:
        if not self.training:
            return x
        if not hasattr(self, "mask"):
            self.mask = torch.rand(WIDTH) > 0.5
        return x * self.mask


@refused("'mask' is set in one step and used in later ones")
class RegistersItsMaskLate(Net):
    def middle(self, x: Any) -> Any:
        if not self.training:
            return x
        if not hasattr(self, "mask"):
            self.register_buffer("mask", torch.rand(WIDTH))
        return x * self.mask


@refused("train() or eval() draws random numbers from the generator of torch, at zoo_random.py:")
class DrawsAnEpochsMask(Net):
    def train(self, mode: bool = True) -> Any:
        self.mask = torch.rand(WIDTH) if mode else 1.0
        return super().train(mode)

    def middle(self, x: Any) -> Any:
        return x * self.mask


@refused("'mask' is set in one step and used in later ones")
class KeepsTheMaskOfALayer(Net):
    def more(self) -> None:
        self.drop = nn.Dropout(0.5)
        self.mask: Any = None

    def middle(self, x: Any) -> Any:
        if self.training and self.mask is None:
            self.mask = self.drop(torch.ones(WIDTH))
        return x * self.mask if self.training else x


@refused("changes the rate `p` of an nn.Dropout, from 0.5 to 0.3")
class ChangesTheRate(Net):
    def more(self) -> None:
        self.drop = nn.Dropout(0.1)
        self.drop.p = 0.5

    def middle(self, x: Any) -> Any:
        if self.training:
            self.drop.p = 0.3
        return self.drop(x) * self.drop.p


@trains(draws=True)
class DecaysItsWeights(Net):
    """In place, by drawn numbers: parameters are kept in checkpoints."""

    def middle(self, x: Any) -> Any:
        if self.training:
            with torch.no_grad():
                self.inner.weight.mul_(1 - 0.1 * torch.rand_like(self.inner.weight))
        return F.relu(x)


@trains(draws=True)
class KeepsItsLastMask(Net):
    """To look at it; each step draws its own."""

    def middle(self, x: Any) -> Any:
        self.mask = torch.rand_like(x) > 0.5 if self.training else 1.0
        return x * self.mask


@refused("iterates over its own layers")
class KnowsItsLayers(Net):
    def middle(self, x: Any) -> Any:
        for layer in self.children():
            if not isinstance(layer, nn.Linear):
                raise TypeError(f"no layer of mine: {layer}")
        return F.dropout(x, 0.5, self.training)


@refused("its output changes from call to call")
class OwnGenerator(Net):
    def more(self) -> None:
        self.generator = torch.Generator().manual_seed(0)

    def middle(self, x: Any) -> Any:
        return x + torch.randn(WIDTH, generator=self.generator) if self.training else x
