"""How Taylor attention is cut into pieces on a GPU, and what that costs.

A sequence is cut into segments of T. Inside one, weights are computed pair by pair, as flash attention does, with a
polynomial in place of the exponential; what lies before it comes from a state of F features. All tiles of all segments
run at once: 16 heads of 16,384 tokens are 4,096 programs for 132 multiprocessors. There are three passes: states of
segments, a scan over them, results. Backward: dq; states of q, scan, dk and dv.

T is the smallest power of two whose states, with the saved normaliser, stay under 15 % of the bytes of q, k, v and the
result: 512 at D = 16, Dv = 64 in bfloat16. The work between segments does not depend on T, the work inside grows with
it, so smaller is better.

Per token and head at D = 16, Dv = 64, T = 512, tiles of 64, bfloat16, causal (320 bytes in and out, 640 backward):

                multiply-adds on tensor cores                               bytes through memory
    states      2 192 16 features + 192 64 state                   = 18 k   160 + 41
    scan                                                                    82
    results     288 (16 + 64) inside + 13 k from the state         = 36 k   320 + 41 + 4
    forward                                                          54 k   650
    dq          288 (16 + 64 + 16) + 3 k + 10 k + 3 k              = 44 k   450 + 41 + 40
    dk, dv      18 k + 288 (16 + 2 64 + 16) + 3 k + 2 10 k + 3 k   = 90 k   170 + 41 + 82 + 330 + 41 + 160
    backward                                                        134 k   1,355

With 395 k multiply-adds per ns (790 TFLOP/s) and 4.3 kB per ns on an H200, forward takes at least 0.15 ns for bytes and
0.14 for products, forward and backward 0.47 and 0.48. It took 0.40 and 1.45 (5.9 and 7.2 times the floor of inputs and
results): states 0.13 each, scan 0.02 each, results 0.27, dq 0.38, dk and dv 0.52. Instructions are what limits it: by
the compiler's output for sm_90 they take, four a cycle, 0.14 (results), 0.17 (dq) and 0.24 ns (dk, dv).

bfloat16 stays bfloat16 in products. float16 is read into float32 and multiplied as TF32, which has its precision and
float32's range: states of 131,072 tokens do not overflow. float32 takes three TF32 products for each.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tiebreak.layers.kernels.taylor_launch import Constants

EXTRA = 0.15  # of the bytes of inputs and results, for states and normalisers
LEAST = 128  # tokens of a segment
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


@dataclass(frozen=True)
class Tuning:
    """Blocks of one kernel: rows of its own tile, rows of the tiles it loops over, features at once."""

    rows: int
    others: int = 64
    features: int = 64
    warps: int = 4
    stages: int = 1  # no copies ahead. With more, Triton 3.6 does not fence them before Hopper's products read them
    registers: int | None = None  # at most, of a thread: 128 lets two programs of eight warps share a multiprocessor
    copied: bool = False  # tiles are copied by descriptors (TMA), `stages` at a time; needs no fence

    def options(self) -> dict[str, int]:
        """What a launch takes."""
        most = {} if self.registers is None else {"maxnreg": self.registers}
        return {"num_warps": self.warps, "num_stages": 1 if self.copied else self.stages, **most}

    def loops(self, copied: bool) -> dict[str, object]:
        """How tiles are brought: one at a time where `copied` says that there can be no descriptors."""
        return {"COPIED": copied, "STAGES": self.stages if copied or not self.copied else 1}


# Measured on an H200 at 16 heads of D = 16 and values of 64.
TUNING: dict[str, Tuning] = {  # for bfloat16
    "states": Tuning(rows=64, stages=3, copied=True),
    "scan": Tuning(rows=1024),
    "forward": Tuning(rows=64, features=32, stages=3, copied=True),
    "queries": Tuning(rows=64, features=32),
    "keys": Tuning(rows=64, others=32, features=32, registers=128),
}
# For D over 16. Two warps take no wgmma: ptxas 12.8, which Triton 3.6 brings, makes gradients at D = 32 read the
# address of an operand from a register that it never wrote.
LARGE_TUNING: dict[str, Tuning] = {
    **TUNING,
    **dict.fromkeys(("forward", "queries", "keys"), Tuning(rows=32, others=32, features=32, warps=2)),
}
WIDE_TUNING: dict[str, Tuning] = {  # for operands of four bytes: half the tile
    "states": Tuning(rows=32, features=64),
    "scan": Tuning(rows=256),
    "forward": Tuning(rows=64, others=32, features=32),
    "queries": Tuning(rows=64, others=32, features=32),
    "keys": Tuning(rows=64, others=32, features=32),
}


def power_of_2(least: int) -> int:
    """The smallest one that is no less. Triton's own function takes 50 microseconds outside a kernel."""
    return 1 << (least - 1).bit_length()


def operand(dtype: torch.dtype) -> torch.dtype:
    """What the tensor cores multiply, and states are kept in."""
    return torch.bfloat16 if dtype == torch.bfloat16 else torch.float32


def lines(x: Tensor) -> tuple[int, int, int]:
    """The strides of batch, head and row of [B, H, L, width]; entries of a row lie side by side."""
    return x.stride(0), x.stride(1), x.stride(2)


@dataclass(frozen=True)
class Plan:
    """Sizes of one call, and how it is cut."""

    batch: int
    heads: int
    d: int
    v: int
    terms: int
    causal: bool
    scale: float
    dtype: torch.dtype
    forced_tuning: Mapping[str, Tuning] | None = None  # this and the next for tests and for tuning
    forced_segment: int | None = None

    @cached_property
    def tuning(self) -> Mapping[str, Tuning]:
        """The blocks of every kernel."""
        if self.forced_tuning is not None:
            return self.forced_tuning
        if operand(self.dtype) != torch.bfloat16:
            return WIDE_TUNING
        return LARGE_TUNING if self.dp > 16 else TUNING

    @cached_property
    def df(self) -> int:
        """D rounded up, of which features are made: zeros add features that are zero."""
        return max(8, power_of_2(self.d))

    @cached_property
    def dp(self) -> int:
        """D as a tile has it: a product needs 16."""
        return max(16, self.df)

    @cached_property
    def vp(self) -> int:
        """Dv rounded up."""
        return max(16, power_of_2(self.v))

    @cached_property
    def quadratic(self) -> int:
        """How many features of the second order there are outside the low block."""
        return self.df**2 // 2 if self.terms == 3 else 0

    @cached_property
    def low(self) -> int:
        """The size of the low block, with its zeros."""
        return power_of_2(self.df // 2 + self.df + 1)

    @cached_property
    def features(self) -> int:
        """F."""
        return self.quadratic + self.low

    @cached_property
    def precision(self) -> str:
        """How operands are multiplied."""
        if self.dtype == torch.bfloat16 and INTERPRETED:
            return "emulated"
        return "tf32x3" if self.dtype == torch.float32 else "tf32"

    @cached_property
    def segment(self) -> int:
        """T."""
        if self.forced_segment is not None:
            return self.forced_segment
        room = max(1.0, EXTRA * 2 * (self.d + self.v) * self.dtype.itemsize - 4)
        state = self.features * (self.v * operand(self.dtype).itemsize + 4)
        tiles = max(each.rows for name, each in self.tuning.items() if name not in ("states", "scan"))
        return max(LEAST, tiles, power_of_2(int(state / room) + 1))

    @cached_property
    def sizes(self) -> dict[str, object]:
        """The constants that every kernel takes."""
        import triton.language as tl  # shapes are known without it

        return {
            "D": self.d,
            "V": self.v,
            "DF": self.df,
            "DP": self.dp,
            "VP": self.vp,
            "WL": self.low,
            "F": self.features,
            "TERMS": self.terms,
            "TYPE": tl.bfloat16 if self.dtype == torch.bfloat16 and not INTERPRETED else tl.float32,
            "PRECISION": self.precision,
        }

    def copied(self, name: str) -> int:
        """How many rows the tiles have that the kernel `name` has copied by descriptors: 0 if it has none."""
        tuned = self.tuning[name]
        rows = min(tuned.rows, self.segment if name == "states" else tuned.others)
        return rows if tuned.copied else 0

    def slots(self, length: int) -> int:
        """How many states are kept: causal, the last segment's (the first one's, backward) is nobody's past."""
        return -(-length // self.segment) - (1 if self.causal else 0)

    @cached_property
    def blocks(self) -> int:
        """Programs that make the state of one segment: each has some of the features."""
        return -(-self.features // self.tuning["states"].features)

    @cached_property
    def _known(self) -> dict[tuple[str, bool], Constants]:
        return {}

    def tile_constants(self, name: str, masked: bool, copied: bool = False) -> Constants:
        """What the kernel `name` of a tile of rows is compiled for."""
        if (known := self._known.get(key := (f"{name} {copied}", masked))) is None:
            tuned = self.tuning[name]
            own = {
                "CAUSAL": self.causal,
                "MASKED": masked,
                "T": self.segment,
                "M": tuned.rows,
                "N": min(tuned.others, tuned.rows),
                "W": min(tuned.features, self.quadratic or 16),
                **(tuned.loops(copied) if name == "forward" else {}),
            }
            known = self._known[key] = Constants({**self.sizes, **own}, tuned.options())
        return known

    def state_constants(self, masked: bool, gradient: bool, copied: bool = False) -> Constants:
        """What the kernel of the states is compiled for."""
        key = (f"states {gradient} {copied}", masked)
        if (known := self._known.get(key)) is None:
            tuned = self.tuning["states"]
            own = {
                "GRADIENT": gradient,
                "MASKED": masked,
                "T": self.segment,
                "C": min(tuned.rows, self.segment),
                "W": tuned.features,
                **tuned.loops(copied),
            }
            known = self._known[key] = Constants({**self.sizes, **own}, tuned.options())
        return known

    def scan_constants(self, gradient: bool, slots: int) -> Constants:
        """What the scan over segments is compiled for."""
        group = min(16, power_of_2(slots))
        key = (f"scan {group}", gradient)
        if (known := self._known.get(key)) is None:
            tuned = self.tuning["scan"]
            own = {
                "REVERSE": gradient,
                "TOTAL": not self.causal,
                "G": group,
                "E": tuned.rows,
                "TYPE": self.sizes["TYPE"],
                "PRECISION": self.precision,
            }
            known = self._known[key] = Constants(own, {"num_warps": tuned.warps})
        return known
