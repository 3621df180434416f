"""The convolution kernels on a GPU: checked against torch in float64, then timed with several blocks against its own.

    python benchmarks/kernels_gpu.py [--runs 20] [--seconds 300] [--out kernels_gpu.jsonl]

Shapes are those of a residual network of 16 to 64 channels and of a depthwise-separable network on images of 28 x 28 at
batch 64. For every shape, operation and precision: each block is checked first (a wrong one is reported and not timed),
then all are captured as CUDA graphs and replayed in turns, beside the peers: one grouped convolution of all runs
(what vmap makes of F.conv2d), one convolution after the other, and the plain kernels of `stacked_conv`. A line of JSON
is written as soon as a case is done; when the seconds are spent, the rest is left out and counted. The end names the
best blocks, for the rule `conv_products.blocks_of`.

Without a GPU the logic can be tried in Triton's interpreter: TRITON_INTERPRET=1 ... --device cpu --tiny.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import grad as conv_grad

from tiebreak.layers.kernels import conv_depthwise, conv_products, convolution
from tiebreak.layers.kernels.conv_products import Blocks
from tiebreak.layers.stacked_conv import chunk_of

Work = Callable[[], Tensor]
REPLAYED, ROUNDS = 20, 7  # launches in a graph; rounds, of which the median counts
LIMITS = {"float32": 2e-6, "tf32": 2e-3, "bf16": 8e-3}  # norm-wise
OWN = "own choice"
OPERATIONS = ("forward", "input", "weight")


@dataclass(frozen=True)
class Case:
    """A layer of one of the networks."""

    name: str
    inputs: int
    outputs: int
    size: int
    kernel: int = 3
    stride: int = 1
    groups: int = 1

    @property
    def geometry(self) -> tuple[list[int], list[int], list[int]]:
        """Stride, padding and dilation."""
        return [self.stride] * 2, [self.kernel // 2] * 2, [1, 1]


CASES = (
    Case("16 to 16 at 28", 16, 16, 28),
    Case("32 to 32 at 14", 32, 32, 14),
    Case("64 to 64 at 7", 64, 64, 7),
    Case("16 to 32, stride 2", 16, 32, 28, stride=2),
    Case("32 to 64, stride 2", 32, 64, 14, stride=2),
    Case("first", 1, 16, 28),
    Case("depthwise 16 at 28", 16, 16, 28, groups=16),
    Case("depthwise 32 at 14", 32, 32, 14, groups=32),
    Case("pointwise 16 to 32", 16, 32, 28, kernel=1),
    Case("skip 16 to 32, stride 2", 16, 32, 28, kernel=1, stride=2),
    Case("depthwise 32, stride 2", 32, 32, 28, stride=2, groups=32),
    Case("grouped 32 by 4", 32, 32, 14, groups=4),
)
TINY = (Case("tiny", 3, 5, 6), Case("tiny depthwise", 4, 4, 5, groups=4, stride=2))


def candidates(operation: str, case: Case) -> Iterator[tuple[str, Blocks | None]]:
    """Blocks to try, by name; None is the kernels' own choice."""
    yield OWN, None
    if case.groups == case.inputs:
        return  # depthwise: no products
    columns = {"forward": case.outputs, "input": case.inputs}.get(operation, case.inputs * case.kernel**2)
    wide = conv_products.side(columns // case.groups, 64)
    for n in sorted({wide, max(16, wide // 2)}):
        for m, k, warps in ((32, 32, 2), (32, 32, 4), (64, 32, 2), (64, 64, 2), (128, 32, 2)):
            yield f"{m} {n} {k}, {warps} warps", Blocks(m, n, k, warps)


def key_of(operation: str, case: Case, batch: int) -> tuple[str, int, int]:
    """What `conv_products.blocks_of` chooses by, less the type."""
    inputs, outputs, taps = case.inputs // case.groups, case.outputs // case.groups, case.kernel**2
    if operation == "weight":
        return operation, inputs * taps, batch * (-(-case.size // case.stride)) ** 2
    return (operation, outputs, inputs * taps) if operation == "forward" else (operation, inputs, outputs * taps)


@dataclass(frozen=True)
class Problem:
    """Tensors of n runs of a case, with channels last as between two layers."""

    case: Case
    x: Tensor
    weight: Tensor
    dy: Tensor

    @property
    def sizes(self) -> list[int]:
        """Of the images that come out."""
        return list(self.dy.shape[-2:])

    def work(self, operation: str, blocks: Blocks | None) -> Tensor:
        """Our kernel."""
        case, how = self.case, self.case.geometry
        kernel, size = [case.kernel] * 2, [case.size] * 2
        if case.groups == case.inputs > 1:
            if operation == "forward":
                return conv_depthwise.forward(self.x, self.weight, None, self.sizes, how)
            if operation == "input":
                return conv_depthwise.input_gradient(self.dy, self.weight, size, how, case.inputs)
            return conv_depthwise.weight_gradient(self.dy, self.x, kernel, how).sum(dim=1)
        if operation == "forward":
            return conv_products.forward(self.x, self.laid(3, 4, 1, 2), None, self.sizes, how, case.groups, blocks)
        if operation == "input":
            return conv_products.input_gradient(self.dy, self.laid(3, 4, 2, 1), size, how, case.groups, blocks)
        return conv_products.weight_gradient(self.dy, self.x, kernel, how, case.groups, blocks).sum(dim=1)

    def laid(self, *order: int) -> Tensor:
        """The weight with its axes in this order in memory, as `product_conv` hands it over; timed with the kernel."""
        back = sorted(range(5), key=(0, *order).__getitem__)
        return self.weight.permute(0, *order).contiguous().permute(back)

    def plain(self, operation: str, run: int, dtype: torch.dtype | None = None) -> Tensor:
        """torch's convolution of one run."""
        x, weight, dy = (each[run].to(dtype or each.dtype) for each in (self.x, self.weight, self.dy))
        how = (*self.case.geometry, self.case.groups)
        if operation == "forward":
            return F.conv2d(x, weight, None, *how)
        if operation == "input":
            return conv_grad.conv2d_input(x.shape, weight, dy, *how)  # type: ignore[no-any-return, no-untyped-call]
        return conv_grad.conv2d_weight(x, weight.shape, dy, *how)  # type: ignore[no-any-return, no-untyped-call]

    def grouped(self, operation: str) -> Tensor:
        """torch's grouped convolution of all runs, with the runs beside the channels."""
        n = len(self.x)
        x, dy = (each.transpose(0, 1).flatten(1, 2) for each in (self.x, self.dy))
        weight, how = self.weight.flatten(0, 1), (*self.case.geometry, self.case.groups * n)
        if operation == "forward":
            return F.conv2d(x, weight, None, *how)
        if operation == "input":
            return conv_grad.conv2d_input(x.shape, weight, dy, *how)  # type: ignore[no-any-return, no-untyped-call]
        return conv_grad.conv2d_weight(x, weight.shape, dy, *how)  # type: ignore[no-any-return, no-untyped-call]

    def stacked(self, operation: str) -> Tensor:
        """The plain kernels that fused training uses today."""
        how, bias = self.case.geometry, self.weight.new_zeros(self.weight.shape[:2])
        if operation == "forward":
            return convolution.forward(self.x, self.weight, bias, self.sizes, how)
        if operation == "input":
            return convolution.input_gradient(self.dy, self.weight, [self.case.size] * 2, how)
        chunk = chunk_of(self.x.shape[1])
        return convolution.weight_gradient(self.dy, self.x, [self.case.kernel] * 2, how, chunk).sum(dim=1)


def make_problem(case: Case, runs: int, batch: int, precision: str, device: str) -> Problem:
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    generator = torch.Generator(device).manual_seed(time.time_ns() % (1 << 31))

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, device=device).to(dtype)

    out = -(-case.size // case.stride)
    x = draw(runs, batch, case.size, case.size, case.inputs).permute(0, 1, 4, 2, 3)
    dy = draw(runs, batch, out, out, case.outputs).permute(0, 1, 4, 2, 3)
    weight = draw(runs, case.outputs, case.inputs // case.groups, case.kernel, case.kernel)
    return Problem(case, x, weight, dy)


def wrong_by(problem: Problem, operation: str, blocks: Blocks | None) -> float:
    """How far the first and the last run are from torch in float64, norm-wise."""
    found, away = problem.work(operation, blocks), 0.0
    for run in (0, len(problem.x) - 1):
        wanted = problem.plain(operation, run, torch.float64)
        away = max(
            away, float(torch.linalg.vector_norm(found[run].double() - wanted) / torch.linalg.vector_norm(wanted))
        )
    return away


def replay(work: Work, device: str) -> Callable[[], float]:
    """A function that runs the work REPLAYED times and returns the microseconds of one."""
    if device == "cpu":

        def timed() -> float:
            start = time.perf_counter()
            work()
            return 1e6 * (time.perf_counter() - start)

        return timed
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPLAYED):
            work()
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]

    def replayed(_kept: Work = work) -> float:  # the graph reads what the work holds: it must not be freed
        first.record()
        graph.replay()
        last.record()
        last.synchronize()
        return 1000 * float(first.elapsed_time(last)) / REPLAYED

    return replayed


def measure(problem: Problem, operation: str, precision: str, device: str) -> dict[str, Any]:
    """Microseconds of every correct candidate and of the peers, in turns; and what was wrong."""
    works: dict[str, Callable[[], float]] = {}
    wrong: dict[str, str] = {}
    blocks: dict[str, dict[str, int]] = {}
    for name, block in candidates(operation, problem.case):
        try:
            away = wrong_by(problem, operation, block)
            if not away < LIMITS[precision]:  # NaN is wrong too
                wrong[name] = f"{away:.1e} away"
                continue
            works[name] = replay(lambda block=block: problem.work(operation, block), device)  # type: ignore[misc]
            if block is not None:
                blocks[name] = asdict(block)
        except Exception as error:  # a block may need more shared memory than there is
            wrong[name] = f"{type(error).__name__}: {str(error)[:120]}"
    peers = {
        "peer: grouped": lambda: problem.grouped(operation),
        "peer: one after the other": lambda: [problem.plain(operation, run) for run in range(len(problem.x))][-1],
    }
    if problem.case.groups == 1 and precision != "bf16":
        peers["peer: stacked_conv"] = lambda: problem.stacked(operation)
    for name, work in peers.items():
        works[name] = replay(work, device)
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, run in works.items():
            times[name].append(run())
    medians = {name: round(statistics.median(each), 2) for name, each in times.items()}
    ours = {name: value for name, value in medians.items() if not name.startswith("peer")}
    best = min(ours, key=lambda name: ours[name]) if ours else ""
    return {"microseconds": medians, "wrong": wrong, "best": best, "blocks": blocks.get(best)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--out", type=Path, default=Path("kernels_gpu.jsonl"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--cases", type=int, nargs="*", help="numbers of the cases; default: all")
    parser.add_argument("--precisions", default="tf32,bf16,float32")
    given = parser.parse_args()
    start, tuned, left = time.monotonic(), dict[tuple[Any, ...], Blocks](), 0
    batch = 2 if given.tiny else 64
    cases = TINY if given.tiny else CASES if given.cases is None else [CASES[number] for number in given.cases]
    for precision, case in itertools.product(given.precisions.split(","), cases):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
        for operation in OPERATIONS:
            if time.monotonic() - start > given.seconds:
                left += 1
                continue
            problem = make_problem(case, given.runs, batch, precision, given.device)
            found = measure(problem, operation, precision, given.device)
            row = {"case": case.name, "operation": operation, "precision": precision, "n": given.runs, **found}
            with given.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            times = found["microseconds"]
            peers = {name: value for name, value in times.items() if name.startswith("peer")}
            best, own, wrong = found["best"], times.get(OWN), len(found["wrong"])
            print(f"{precision:8} {case.name:26} {operation:8} best {times.get(best)} us ({best}), own choice {own}, "
                  f"{wrong} wrong, {peers}", flush=True)  # fmt: skip
            if found["blocks"]:
                tuned[*key_of(operation, case, batch), precision] = Blocks(**found["blocks"])
    print(f"{left} cases left out: time was up" if left else "all cases done")
    for key, block in tuned.items():
        print(f"# {key}: {block}")


if __name__ == "__main__":
    main()
