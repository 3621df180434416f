"""Softmax attention of many runs: kernels without a matrix of scores against products and a softmax.

    python benchmarks/long_attention.py [--runs 9] [--tokens 65536] [--lengths 50,256,1377] [--device cuda] [--out FILE]
    python benchmarks/long_attention.py --smoke        tiny sizes on a CPU: that everything runs and agrees

Forward and gradient under vmap, on a GPU captured in a CUDA graph; milliseconds of all runs together, the median of
replays. A form counts only if its results agree with those of the first; `layers.long_attention.LONG` has the lengths
that follow from it. Every row is printed, and goes into the file, as soon as it is measured.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.func import grad, vmap

from tiebreak.layers import long_attention
from tiebreak.layers.attention import attend
from tiebreak.layers.attention_kernels import Name

HEADS = ((2, 100), (4, 16))  # heads and their width: of the speech encoder, of a small transformer
CLOSE = {torch.float32: 1e-3, torch.bfloat16: 3e-2}  # relative; TF32 and bfloat16 round differently in each form
MOST = 18 * 2**30  # bytes of one matrix of scores, of which the formula holds about six


def step(causal: bool) -> Callable[..., tuple[Tensor, ...]]:
    """The result of all runs and the gradients of q, k and v."""

    def loss(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        out = attend(q, k, v, causal=causal)
        return out.float().square().sum(), out

    def one(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        gradients, out = grad(loss, argnums=(0, 1, 2), has_aux=True)(q, k, v)
        return (out, *gradients)

    return vmap(one)


def take(form: str) -> None:
    """Make `attend` use the formula, or a kernel of this name."""
    for kind in long_attention.LONG:
        long_attention.LONG[kind] = None if form == "formula" else 1
    named: dict[str, Name] = {"flash": "flash", "cudnn": "cudnn", "efficient": "efficient"}
    long_attention.HALF_KERNEL = named.get(form)


def captured(call: Callable[..., Any], given: list[Tensor]) -> tuple[Callable[[], None], tuple[Tensor, ...]]:
    """The call, ready to be repeated, and its results."""
    if not given[0].is_cuda:
        return lambda: call(*given), call(*given)
    call(*given)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call(*given)

    def replay() -> None:
        graph.replay()
        torch.cuda.synchronize()

    replay()
    return replay, found


def milliseconds(work: Callable[[], None], seconds: float = 0.3) -> float:
    found: list[float] = []
    end = time.perf_counter() + seconds
    while len(found) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        found.append(1000 * (time.perf_counter() - start))
    return statistics.median(found)


def apart(found: tuple[Tensor, ...], wanted: tuple[Tensor, ...]) -> float:
    """The largest relative distance of a result or gradient."""
    pairs = [(one.double(), other.double()) for one, other in zip(found, wanted, strict=True)]
    return max(float((one - other).norm() / other.norm().clamp_min(1e-30)) for one, other in pairs)


def rows(given: argparse.Namespace, length: int, heads: int, width: int, causal: bool) -> list[dict[str, Any]]:
    """All forms in all precisions at one size."""
    made = []
    precisions = ("bf16", "tf32", "float32") if given.device == "cuda" else ("float32",)
    batch = max(1, given.tokens // length)
    for precision in precisions:
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        draws = torch.Generator(given.device).manual_seed(0)
        shape = (given.runs, batch, heads, length, width)
        tensors = [torch.randn(shape, generator=draws, device=given.device).to(dtype) for _ in range(3)]
        forms = ["formula", *(["cpu"] if given.device == "cpu" else ["efficient"])]
        forms += ["flash", "cudnn"] if dtype == torch.bfloat16 else []
        wanted = None
        row: dict[str, Any] = {"L": length, "B": batch, "H": heads, "D": width, "causal": causal}
        row |= {"runs": given.runs, "precision": precision}
        for form in forms:
            if form == "formula" and given.runs * batch * heads * length**2 * dtype.itemsize > MOST:
                continue
            take(form)
            work, found = captured(step(causal), tensors)
            wanted = found if wanted is None else wanted
            far = apart(found, wanted)
            ms = round(milliseconds(work), 4) if far < CLOSE[dtype] else None
            made.append({**row, "form": form, "apart": far, "ms": ms})
            print(json.dumps(made[-1]), flush=True)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--tokens", type=int, default=65536, help="of one run: batch times length")
    parser.add_argument("--lengths", default="50,128,256,512,1024,1377,4096")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, help="rows as JSON, written after every size")
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args()
    if given.smoke:
        given.runs, given.tokens, given.lengths, given.device = 2, 64, "16,33", "cpu"
    found: list[dict[str, Any]] = []
    for length in [int(each) for each in given.lengths.split(",")]:
        for heads, width in HEADS:
            for causal in (False, True):
                found += rows(given, length, heads, width, causal)
                if given.out:
                    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
