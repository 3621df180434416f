"""Large batched products on a GPU: our kernel, the library's in float32 and the library's in TF32, in turns.

    python benchmarks/products.py [--rounds 9] [--save]

Measures what `--precision tf32` gains, and from which size on the library is faster than our kernel
(tiebreak.train.fused.rewrite.LARGE).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

import timing

# n, M, K, N, whether a and b lie transposed in memory
SHAPES = {
    "words of a language model": (5, 1280, 512, 10_000, False, True),
    "its gradient by the state": (5, 1280, 10_000, 512, False, False),
    "its gradient by the weights": (5, 512, 1280, 10_000, True, False),
    "a recurrent step": (5, 128, 512, 512, False, False),
    "a hidden layer of a small CNN": (100, 8, 576, 320, False, True),
    "a layer on short clips": (10, 8_000, 200, 400, False, True),
    "attention: scores of half a minute": (512, 1377, 100, 1377, False, True),
    "attention: values": (512, 1377, 1377, 100, False, False),
    "attention: gradient by the keys": (512, 1377, 1377, 100, True, False),
    "a layer of a recogniser": (4, 88_128, 200, 400, False, True),
    "its gradient": (4, 200, 88_128, 400, True, False),
}


def tensor(shape: tuple[int, int, int], turned: bool, generator: torch.Generator) -> Tensor:
    n, rows, columns = shape
    made = torch.randn((n, columns, rows) if turned else shape, device="cuda", generator=generator)
    return made.mT if turned else made


def recorded(work: Callable[[], object], repeats: int) -> torch.cuda.CUDAGraph:
    """Products one after the other as training has them: without the time that Python takes to start each."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            work()
    return graph


def milliseconds(graph: torch.cuda.CUDAGraph, repeats: int) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    graph.replay()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - start) / repeats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    from tiebreak.layers.kernels.product import product

    rows: list[dict[str, object]] = []
    for name, (n, outer, inner, columns, turned_a, turned_b) in SHAPES.items():
        generator = torch.Generator("cuda").manual_seed(0)
        a, b = tensor((n, outer, inner), turned_a, generator), tensor((n, inner, columns), turned_b, generator)
        wanted = torch.bmm(a[:1].double(), b[:1].double())

        def library(allow: bool, a: Tensor = a, b: Tensor = b) -> Tensor:
            torch.backends.cuda.matmul.allow_tf32 = allow
            return torch.bmm(a, b)

        def ours(a: Tensor = a, b: Tensor = b) -> Tensor:
            made: Tensor = product(a, b)
            return made

        ways: dict[str, Callable[[], Tensor]] = {
            "ours": ours, "library": lambda: library(False), "library, tf32": lambda: library(True)
        }  # fmt: skip
        errors = {way: float((work()[:1] - wanted).abs().max() / wanted.abs().max()) for way, work in ways.items()}
        repeats = max(2, min(100, int(2e11 / (n * outer * inner * columns))))
        graphs = {way: recorded(work, repeats) for way, work in ways.items()}
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(given.rounds):
            for way, graph in graphs.items():
                times[way].append(milliseconds(graph, repeats))
        found = {way: statistics.median(each) for way, each in times.items()}
        print(f"{name} ({n} of {outer} x {inner} times {inner} x {columns})")
        for way, spent in found.items():
            print(f"  {way:14} {spent:8.3f} ms, largest error {errors[way]:.1e}")
        rows += [
            {"benchmark": "products", "case": name, "shape": [n, outer, inner, columns], "way": way, "ms": spent,
             "error": errors[way]} for way, spent in found.items()
        ]  # fmt: skip
    if given.save:
        print(timing.save("products", rows, device=torch.cuda.get_device_name()))


if __name__ == "__main__":
    main()
