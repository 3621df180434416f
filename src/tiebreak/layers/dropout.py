"""Dropout whose mask is a function of (run key, step, layer, call, element), never of a generator's history.

    y_i = x_i * keep_i / (1 - r),   keep_i = [ stir(key_{step,layer,call} xor mix(i)) >= 2^32 r - 2^31 ]

x input of any shape, r rate, i the element's flat index, mix a signed 32-bit finaliser, stir its inner half: enough for
the high bits that the comparison looks at, since mix(i) and the keys are well mixed already. The same mask comes out
alone, under vmap, inside a CUDA graph and after a resume, which no generator-based dropout offers. A layer that is
called several times in one pass draws a new mask each time; whoever starts a pass resets the counters of its calls.
Unlike `nn.Dropout`, the rate is a tensor (it can be tuned per run) and the key must be set before each step.
Source of the finaliser's constants: Chris Wellons, "Prospecting for Hash Functions" (lowbias32), public domain.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tiebreak.errors import TiebreakError
from tiebreak.layers.transforms import places_apart

GOLDEN = 0x9E3779B9 - 2**32  # 2^32 / golden ratio, odd, as a signed 32-bit integer


def mix(bits: Tensor) -> Tensor:
    """A 32-bit finaliser on int32: every input bit reaches every output bit. `& mask` makes the shift logical."""
    bits = stir(bits ^ ((bits >> 16) & 0xFFFF))
    return bits ^ ((bits >> 16) & 0xFFFF)


def stir(bits: Tensor) -> Tensor:
    """The finaliser without its outer shifts."""
    bits = bits * 0x7FEB352D
    bits = bits ^ ((bits >> 15) & 0x1FFFF)
    return bits * (0x846CA68B - 2**32)


_COUNTERS: dict[tuple[int, torch.device], Tensor] = {}


def _counters(count: int, device: torch.device) -> Tensor:
    """mix(i) for the elements 0 to count - 1, computed once: it is most of a mask's work on a CPU."""
    found = _COUNTERS.get((count, device))
    if found is None:
        with torch._C._DisableFuncTorch():  # a transform around the call would wrap what stays after it
            found = mix(torch.arange(count, dtype=torch.int32, device=device))
        if type(found) is Tensor:  # a tensor that only stands for one while something is traced must not stay
            _COUNTERS[count, device] = found
    return found


def step_keys(run_key: int, first_step: int, steps: int, layers: int) -> Tensor:
    """The keys of `steps` consecutive steps: int32 [steps, layers]. `run_key` is a 63-bit stream key."""
    low = (run_key & 0xFFFFFFFF) - 2**31
    high = (run_key >> 32) & 0x7FFFFFFF
    step = torch.arange(first_step, first_step + steps, dtype=torch.int32)
    keys = mix(mix(step ^ low) ^ high)
    layer = torch.arange(layers, dtype=torch.int32) * GOLDEN
    return mix(keys[:, None] ^ layer[None, :])


def hashed(count: int, key: Tensor) -> Tensor:
    """Random bits, int32 [count]; `key` is one entry of `step_keys`."""
    return stir(_counters(count, key.device) ^ key)


def drop(x: Tensor, rate: Tensor, key: Tensor) -> Tensor:
    """Zero a share `rate` of x and scale the rest by 1/(1-rate); `key` is one entry of `step_keys`."""
    return x * mask(x.shape, rate, key)


def mask(shape: torch.Size, rate: Tensor, key: Tensor) -> Tensor:
    """0 or 1/(1-rate) for every element. A rate of 1 gives zeros: 0 / 0 would be NaN."""
    keep = hashed(shape.numel(), key) >= rate * 2.0**32 - 2.0**31
    return (keep / torch.threshold(1 - rate, 0.0, torch.inf)).view(shape)


def mask_like(x: Tensor, shape: torch.Size, rate: float, key: Tensor) -> Tensor:
    """A mask for x, in float32 or more: float16 does not hold 2^32, bfloat16 few rates."""
    wide = torch.promote_types(x.dtype, torch.float32)
    return mask(shape, torch.full((), rate, dtype=wide, device=x.device), key)


def masked(x: Tensor, scales: Tensor, inplace: bool = False) -> Tensor:
    """x times a mask, rounded to the type of x at the end: 1/(1-rate) itself is not rounded to 16 bits."""
    if inplace:
        return x.mul_(scales)
    return (x * scales).to(x.dtype) if x.is_floating_point() else x * scales


def apart(key: Tensor) -> Tensor:
    """The key, with one of its own for every row of a user's `torch.func.vmap(…, randomness="different")`."""
    for row in places_apart(key.device):
        key = mix(key ^ mix(row + 1))
    return key


class Keyed(nn.Module):
    """A layer that draws random numbers. Its key is a buffer, so that one run sets it and a cohort stacks it."""

    key: Tensor
    calls = 0  # in this pass

    def __init__(self) -> None:
        super().__init__()
        self.add_key()

    def add_key(self) -> None:
        """Register the key."""
        self.register_buffer("key", torch.zeros((), dtype=torch.int32), persistent=False)

    def next_key(self) -> Tensor:
        """The key of the next call in this pass; the first call's is the layer's own."""
        call = self.count_call()
        return apart(self.key if call == 0 else mix(self.key ^ ((call * GOLDEN + 2**31) % 2**32 - 2**31)))

    def count_call(self) -> int:
        """The number of the next call in this pass, which counts as made."""
        own = self.__dict__  # `nn.Module.__setattr__` takes ten times as long
        call: int = own.get("calls", 0)
        own["calls"] = call + 1
        if torch._C._current_graph_task_id() != -1:  # backward: torch.utils.checkpoint repeats a part of the forward
            if call != 1:
                raise TiebreakError(
                    "dropout is called several times in a pass and repeated by torch.utils.checkpoint, which cannot"
                    " tell the calls apart; use one nn.Dropout for each place, or leave out the checkpoint"
                )
            call, own["calls"] = 0, 1
        return call


class Dropout(Keyed):
    """The layer. Its rate is a buffer for the same reason."""

    rate: Tensor
    inplace = False  # as in `nn.Dropout`: change the input itself
    idle = False  # the rate is known to be 0, of every run: no mask is needed

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.add_rate(rate)

    def add_rate(self, rate: float) -> None:
        """Register the rate."""
        self.register_buffer("rate", torch.tensor(rate), persistent=False)

    @property
    def p(self) -> float:
        """The rate that an `nn.Dropout` was built with."""
        return float(self.__dict__["p"])

    @p.setter
    def p(self, rate: float) -> None:
        if rate != self.p:
            raise TiebreakError(
                f"it changes the rate `p` of an nn.Dropout, from {self.p:g} to {rate:g}, which would have no effect;"
                " use F.dropout(x, p, self.training)"
            )

    def forward(self, x: Tensor) -> Tensor:
        """x with dropout in training mode, x itself in evaluation mode."""
        if not self.training:
            return x
        if self.idle:  # what a mask of ones would give, its type included
            return x if self.inplace else x.to(torch.promote_types(x.dtype, self.rate.dtype))
        scales = mask(x.shape, self.rate, self.next_key())
        return x.mul_(scales) if self.inplace else x * scales


def restart_calls(network: nn.Module) -> None:
    """Let every layer that draws begin with its first call: the forward pass that follows is a new one."""
    for layer in keyed(network).values():
        layer.calls = 0


def keyed(module: nn.Module) -> dict[str, Keyed]:
    """The layers of a network that draw, by name, in the order that numbers them."""
    return {name: layer for name, layer in module.named_modules() if isinstance(layer, Keyed)}


def dropouts(module: nn.Module) -> list[Dropout]:
    """The dropout layers of a network."""
    return [layer for layer in keyed(module).values() if isinstance(layer, Dropout)]


def skip_zero_rates(network: nn.Module, rates: Mapping[str, Tensor]) -> None:
    """Let the layers whose rate is 0 make no masks. `rates` by buffer: one number, or one for each run of a stack."""
    for name, layer in network.named_modules():
        if isinstance(layer, Dropout):
            layer.idle = not bool(rates[f"{name}.rate" if name else "rate"].any())


def swap_dropout(network: nn.Module) -> None:
    """Turn every `nn.Dropout` into ours. Its relatives call functions, which `functional_dropout` computes with a key.

    The objects stay the same, so that a layer with several names, in a list or with hooks is still one layer.
    """
    for layer in list(network.modules()):
        if type(layer) is nn.Dropout:
            rate = layer.p
            layer.__class__ = Dropout  # type: ignore[assignment]
            assert isinstance(layer, Dropout)
            layer.add_key()
            layer.add_rate(rate)
