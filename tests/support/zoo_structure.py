"""Users' networks with unusual structure: hooks, lazy layers, branches, gradients of their own."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from support.zoo import WIDTH, Net, refused, trains
from tiebreak.models.design import Images


@trains()
class NumpyStart(Net):
    """Initial values from the global generators of NumPy and Python: seeded."""

    def more(self) -> None:
        with torch.no_grad():
            self.inner.weight.copy_(torch.from_numpy(0.1 * np.random.randn(WIDTH, 36)))  # noqa: NPY002
            self.inner.bias.fill_(random.random())


@trains()
class Nested(Net):
    def more(self) -> None:
        blocks = {name: nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2)) for name in ("left", "right")}
        self.blocks = nn.ModuleDict(blocks)

    def middle(self, x: Any) -> Any:
        for name in ("left", "right"):
            layers: Any = self.blocks[name]
            for layer in layers:
                x = x + torch.tanh(layer(x))
        return x


@trains()
class Lazy(Net):
    def more(self) -> None:
        self.inner = nn.LazyLinear(WIDTH)
        self.norm = nn.LazyBatchNorm1d()

    def middle(self, x: Any) -> Any:
        return F.relu(self.norm(x))


@trains()
class MakesItsLayer(Net):
    """Makes a layer when it first sees an input."""

    def middle(self, x: Any) -> Any:
        if not hasattr(self, "extra"):
            self.extra = nn.Linear(x.shape[1], WIDTH).to(x)
        return F.relu(self.extra(x))


@refused("generator of torch")
class MakesALayerEachTime(Net):
    def middle(self, x: Any) -> Any:
        return nn.Linear(WIDTH, WIDTH).to(x)(x)


@trains()
class Hooks(Net):
    """Hooks on its own layers, one of them a dropout that is swapped."""

    def more(self) -> None:
        self.drop = nn.Dropout(0.0)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.inner.register_forward_hook(lambda layer, args, out: out * 2)
        self.drop.register_forward_pre_hook(lambda layer, args: (args[0] + 1,))
        self.norm.register_forward_hook(lambda layer, args, out: out + args[0])

    def middle(self, x: Any) -> Any:
        return F.relu(self.norm(self.drop(x)))


@trains(fusible=False)
class DataBranch(Net):
    def middle(self, x: Any) -> Any:
        return F.relu(x) if float(x.mean()) > 0 else torch.tanh(x)


@trains()
class MergedLowRank(Net):
    """The product of two factors as one weight, as LoRA's: each factor's gradient is a product with the other."""

    def more(self) -> None:
        self.up, self.down = nn.Parameter(torch.ones(WIDTH, 2)), nn.Parameter(torch.ones(2, WIDTH))

    def middle(self, x: Any) -> Any:
        return torch.tanh(0.1 * x @ (self.up @ self.down).T)


@trains()
class SlopeInForward(Net):
    """The slope of a part of the network is an input of the rest, so training takes a gradient of a gradient."""

    def more(self) -> None:
        convolved = nn.Sequential(nn.Unflatten(1, (1, WIDTH)), nn.Conv1d(1, 2, 3), nn.Tanh(), nn.Flatten())
        self.energy = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.Tanh(), convolved)

    def middle(self, x: Any) -> Any:
        return x + torch.func.grad(lambda each: self.energy(each).square().sum())(x)


@trains()
class Fourier(Net):
    def middle(self, x: Any) -> Any:
        return torch.fft.irfft(torch.fft.rfft(x) * torch.exp(torch.tensor(0.3j)), n=WIDTH)


@refused("complex")
class ComplexOutput(Net):
    def forward(self, images: Tensor) -> Tensor:
        return torch.complex(super().forward(images), super().forward(images))


@refused("tuple")
class ReturnsTuple(Net):
    def forward(self, images: Tensor) -> Any:
        return super().forward(images), 1


@refused("has no parameters to train")
class AllFrozen(Net):
    def more(self) -> None:
        self.requires_grad_(False)


@trains()
class Frozen(Net):
    def more(self) -> None:
        self.inner.requires_grad_(False)


@trains()
class Unused(Net):
    def more(self) -> None:
        self.unused = nn.Linear(3, 3)


@trains()
class InPlace(Net):
    def more(self) -> None:
        self.act = nn.ReLU(inplace=True)

    def middle(self, x: Any) -> Any:
        x = x + 1
        x *= 2
        return self.act(x)


class _Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, above: Any) -> Any:
        return 3 * ctx.saved_tensors[0] ** 2 * above


class _OldCube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, above: Any) -> Any:
        return 3 * ctx.saved_tensors[0] ** 2 * above


@trains()
class OwnGradient(Net):
    def middle(self, x: Any) -> Any:
        return _Cube.apply(x)  # type: ignore[no-untyped-call]


@trains(fusible=False)
class OldOwnGradient(Net):
    def middle(self, x: Any) -> Any:
        return _OldCube.apply(x)  # type: ignore[no-untyped-call]


@trains(fusible=False)
class Checkpointed(Net):
    def middle(self, x: Any) -> Any:
        return checkpoint(torch.tanh, x, use_reentrant=False)


@trains(fusible=False, draws=True)
class CheckpointedDropout(Net):
    def more(self) -> None:
        self.block = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.4), nn.Tanh())

    def middle(self, x: Any) -> Any:
        return checkpoint(self.block, x, use_reentrant=False)


@refused("torch.utils.checkpoint")
class CheckpointedTwice(Net):
    def more(self) -> None:
        self.block = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.4), nn.Tanh())

    def middle(self, x: Any) -> Any:
        return self.block(checkpoint(self.block, x, use_reentrant=False))


@refused("torch.utils.checkpoint")
class CheckpointedFunction(Net):
    def middle(self, x: Any) -> Any:
        return checkpoint(lambda x: torch.tanh(F.dropout(x, 0.4, self.training)), x, use_reentrant=False)


@trains()
class PartWithoutGradient(Net):
    def middle(self, x: Any) -> Any:
        with torch.no_grad():
            scale = x.abs().mean(dim=1, keepdim=True)
        return F.relu(x) / (1 + scale)


@trains(fusible=False)
class GradientHook(Net):
    def more(self) -> None:
        self.inner.weight.register_hook(lambda gradient: 0.1 * gradient)


@refused("post_accumulate")
class AccumulatedHook(Net):
    def more(self) -> None:
        self.inner.weight.register_post_accumulate_grad_hook(lambda parameter: None)


@refused("manual_seed")
class SeedsItself(Net):
    def __init__(self, shape: Images) -> None:
        torch.manual_seed(42)
        super().__init__(shape)


@refused("set_default_dtype")
class DoublePrecisionForAll(Net):
    def __init__(self, shape: Images) -> None:
        torch.set_default_dtype(torch.float64)
        super().__init__(shape)


@refused("'embedding.weight' is sparse")
class SparseEmbedding(nn.Module):
    def __init__(self, shape: Images) -> None:
        super().__init__()
        self.embedding, self.out = nn.Embedding(8, 2, sparse=True), nn.Linear(72, shape.classes)

    def forward(self, images: Tensor) -> Any:
        return self.out(self.embedding((images.flatten(1) > 0.5).long()).flatten(1))


@refused("'c.weight' is of type bfloat16")
class HalfParameters(Net):
    """Adam's corrections are 0 in bfloat16: without the refusal its weights become 200,000."""

    def more(self) -> None:
        self.c = nn.Linear(WIDTH, WIDTH, dtype=torch.bfloat16)

    def middle(self, x: Any) -> Any:
        return F.relu(self.c(x.bfloat16()).to(x.dtype))


@refused("complex64")
class ComplexParameter(Net):
    def more(self) -> None:
        self.c = nn.Parameter(torch.randn(WIDTH, WIDTH, dtype=torch.complex64))

    def middle(self, x: Any) -> Any:
        return (x.to(self.c.dtype) @ self.c).abs()
