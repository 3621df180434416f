"""Random numbers of torch's functions, as functions of a key: `torch.rand`, `bernoulli_`, `randperm`, `F.dropout2d`, …

    u_i = floor(bits_i / 2^(32-d)) / 2^d,   bits_i = mix(mix(i) xor key)

i an element's flat index, d as many digits as its type holds. All else is made of such uniform numbers: normal ones by
Box and Muller (at most 5.8 in float32), exponential ones as -log(1 - u), a permutation by sorting, draws without
replacement as the largest p_i / e_i with exponential e_i. The distributions are torch's, the numbers are not: they are
the same alone, under vmap, in a traced step and after a resume.

Each function takes the key of the call and torch's arguments. It answers `NotImplemented` to what it does not know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsIndex

import torch
import torch.nn.functional as F
from torch import Tensor

from tiebreak.layers.dropout import hashed, mask_like, masked, mix

DIGITS = {torch.float64: 32, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}  # of a number below 1
LARGEST_SPAN = 2**31  # of whole numbers, whose product with 32 bits fits into 64
SELU = 1.7580993408473766  # the product of SELU's scale and alpha: what alpha dropout drops to is minus this


def _bits(shape: Sequence[int], key: Tensor) -> Tensor:
    """Whole numbers from 0 to 2^32 - 1, int64."""
    return (mix(hashed(math.prod(shape), key)).long() & 0xFFFFFFFF).view(tuple(shape))


def uniform(shape: Sequence[int], key: Tensor, dtype: torch.dtype) -> Tensor:
    """From 0 up to, but without, 1."""
    digits = DIGITS[dtype]
    wide = torch.promote_types(dtype, torch.float32)
    return ((_bits(shape, key) >> (32 - digits)).to(wide) * 2.0**-digits).to(dtype)


def exponential(shape: Sequence[int], key: Tensor, dtype: torch.dtype) -> Tensor:
    """With mean 1, above 0, as torch's: the logarithm of one is finite, and a share of 0 over one is 0."""
    found = -torch.log1p(-uniform(shape, key, torch.promote_types(dtype, torch.float32))).to(dtype)
    return found.clamp(min=torch.finfo(dtype).tiny)


def normal(shape: Sequence[int], key: Tensor, dtype: torch.dtype) -> Tensor:
    """With mean 0 and standard deviation 1."""
    wide = torch.promote_types(dtype, torch.float32)
    angle = 2 * math.pi * uniform(shape, mix(~key), wide)
    return ((2 * exponential(shape, key, wide)).sqrt() * torch.cos(angle)).to(dtype)


Distribution = Callable[[Sequence[int], Tensor, torch.dtype], Tensor]


def _made(found: Tensor, device: Any = None, requires_grad: bool = False, **unused: Any) -> Tensor:
    found = found.to(torch.get_default_device() if device is None else device)
    return found.requires_grad_() if requires_grad else found


def shape_of(size: Any) -> tuple[int, ...]:
    """Of `torch.rand(2, 3)` and `torch.rand((2, 3))`, also with numbers of NumPy."""
    size = size[0] if len(size) == 1 and not isinstance(size[0], SupportsIndex) else size
    return tuple(map(int, size))


def _new(draw: Distribution) -> Callable[..., Any]:
    """`torch.rand(2, 3)`, `torch.rand((2, 3), dtype=…)`."""

    def made(key: Tensor, *size: Any, dtype: torch.dtype | None = None, **more: Any) -> Any:
        shape, kind = shape_of(more.pop("size", size)), dtype or torch.get_default_dtype()
        return _made(draw(shape, key, kind), **more) if kind in DIGITS else NotImplemented

    return made


def _like(draw: Distribution) -> Callable[..., Any]:
    def made(key: Tensor, input: Tensor, *, dtype: torch.dtype | None = None, **more: Any) -> Any:
        kind = dtype or input.dtype
        more = {"device": input.device, **more}
        return _made(draw(input.shape, key, kind), **more) if kind in DIGITS else NotImplemented

    return made


def _whole(shape: Sequence[int], key: Tensor, low: int, high: int) -> Any:
    if not 0 < high - low <= LARGEST_SPAN:
        return NotImplemented
    return low + ((_bits(shape, key) * (high - low)) >> 32)


def _randint(key: Tensor, *args: Any, dtype: torch.dtype = torch.long, **more: Any) -> Any:
    """`torch.randint([low,] high, size)`."""
    *ends, size = [*args, *(more.pop(name) for name in ("low", "high", "size") if name in more)]
    found = _whole(tuple(size), key, *((0, *ends) if len(ends) == 1 else ends))
    return found if found is NotImplemented else _made(found.to(dtype), **more)


def _randint_like(key: Tensor, input: Tensor, *ends: int, dtype: torch.dtype | None = None, **more: Any) -> Any:
    ends = (*ends, *(more.pop(name) for name in ("low", "high") if name in more))
    found = _whole(input.shape, key, *((0, *ends) if len(ends) == 1 else ends))
    more = {"device": input.device, **more}
    return found if found is NotImplemented else _made(found.to(dtype or input.dtype), **more)


def _randperm(key: Tensor, n: int, *, dtype: torch.dtype = torch.long, **more: Any) -> Tensor:
    return _made(_bits((n,), key).argsort().to(dtype), **more)


def _bernoulli(key: Tensor, input: Tensor, p: float | None = None) -> Tensor:
    """1 with the probability p, or the one that stands in the input."""
    return _kept(input.shape, key, input if p is None else p).to(input.dtype)


def _kept(shape: Sequence[int], key: Tensor, p: Tensor | float) -> Tensor:
    if not isinstance(p, Tensor) and not 0 <= p <= 1:
        raise ValueError(f"a probability has to be between 0 and 1, but got {p}")
    return uniform(shape, key, torch.float32) < p


def _fill_bernoulli(key: Tensor, self: Tensor, p: Tensor | float = 0.5) -> Tensor:
    return self.copy_(_kept(self.shape, key, p))


def _fill(draw: Distribution, key: Tensor, self: Tensor, factor: float, shift: float) -> Any:
    return self.copy_(shift + factor * draw(self.shape, key, self.dtype)) if self.dtype in DIGITS else NotImplemented


def _fill_uniform(key: Tensor, self: Tensor, from_: float = 0.0, to: float = 1.0, **more: float) -> Any:
    low = more.get("from", from_)
    return _fill(uniform, key, self, to - low, low)


def _fill_normal(key: Tensor, self: Tensor, mean: float = 0.0, std: float = 1.0) -> Any:
    return _fill(normal, key, self, std, mean)


def _fill_exponential(key: Tensor, self: Tensor, lambd: float = 1.0) -> Any:
    return _fill(exponential, key, self, 1 / lambd, 0.0)


def _normal(key: Tensor, mean: Any, std: Any = 1.0, size: Any = None, **more: Any) -> Any:
    """`torch.normal` of tensors, or of two numbers and a size."""
    middle, spread = (each.detach() if isinstance(each, Tensor) else each for each in (mean, std))
    both = middle + spread
    if not isinstance(both, Tensor):
        found = _new(normal)(key, size, dtype=more.pop("dtype", None))
        return found if found is NotImplemented else _made(mean + std * found, **more)
    return middle + spread * normal(both.shape, key, both.dtype) if both.dtype in DIGITS else NotImplemented


def _multinomial(key: Tensor, input: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
    p = input.detach()
    if not replacement:
        return (p / exponential(p.shape, key, p.dtype)).topk(num_samples, dim=-1).indices
    ends = p.double().cumsum(dim=-1)  # where each number's part of the line from 0 to the sum ends
    points = uniform((*p.shape[:-1], num_samples), key, torch.float64) * ends[..., -1:]
    return torch.searchsorted(ends, points, right=True).clamp(max=p.shape[-1] - 1)


def _gumbel_softmax(
    key: Tensor, logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """As `F.gumbel_softmax`: softmax((logits + g) / tau), in hard form with the gradient of the soft one."""
    noise = -exponential(logits.shape, key, logits.dtype).log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    one = torch.zeros_like(logits).scatter(dim, soft.argmax(dim, keepdim=True), 1.0)
    return one - soft.detach() + soft


def _rrelu(
    key: Tensor,
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    if not training:
        return NotImplemented
    slope = lower + (upper - lower) * uniform(input.shape, key, input.dtype)
    found = torch.where(input >= 0, input, input * slope)
    return input.copy_(found) if inplace else found


def _channel_dropout(unbatched: int) -> Callable[..., Any]:
    """Whole channels of [B, C, …], or of [C, …] with so many axes."""

    def dropped(key: Tensor, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if not training or p == 0:
            return NotImplemented
        return masked(input, mask_like(input, _channels(input, unbatched), _checked(p), key), inplace)

    return dropped


def _channels(input: Tensor, unbatched: int) -> torch.Size:
    lead = 1 if input.ndim == unbatched else 2
    return torch.Size((*input.shape[:lead], *[1] * (input.ndim - lead)))


def _checked(p: float) -> float:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return p


def _alpha_dropout(of_channels: bool) -> Callable[..., Any]:
    """a (x_i keep_i - alpha (1 - keep_i)) + b, with a and b such that mean 0 and variance 1 stay so."""

    def dropped(key: Tensor, input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
        if not training or p in (0, 1):
            return NotImplemented
        shape = _channels(input, 0) if of_channels else input.shape
        keep = (mask_like(input, shape, _checked(p), key) > 0).to(input.dtype)
        a = ((SELU**2 * p + 1) * (1 - p)) ** -0.5
        found = input * (keep * a) + ((keep - 1) * (SELU * a) + SELU * a * p)
        return input.copy_(found) if inplace else found

    return dropped


DRAWS: Mapping[Any, Callable[..., Any]] = {
    torch.rand: _new(uniform),
    torch.randn: _new(normal),
    torch.rand_like: _like(uniform),
    torch.randn_like: _like(normal),
    torch.randint: _randint,
    torch.randint_like: _randint_like,
    torch.randperm: _randperm,
    torch.bernoulli: _bernoulli,
    Tensor.bernoulli: _bernoulli,
    Tensor.bernoulli_: _fill_bernoulli,
    Tensor.uniform_: _fill_uniform,
    Tensor.normal_: _fill_normal,
    Tensor.exponential_: _fill_exponential,
    torch.normal: _normal,
    torch.multinomial: _multinomial,
    Tensor.multinomial: _multinomial,
    F.gumbel_softmax: _gumbel_softmax,
    F.rrelu: _rrelu,
    F.dropout1d: _channel_dropout(2),
    F.dropout2d: _channel_dropout(0),
    F.dropout3d: _channel_dropout(4),
    F.alpha_dropout: _alpha_dropout(of_channels=False),
    F.feature_alpha_dropout: _alpha_dropout(of_channels=True),
}
