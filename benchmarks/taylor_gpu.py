"""Taylor attention's kernels on a GPU: right first, then ours and the peers in one run, then several block choices.

    python benchmarks/taylor_gpu.py [--budget 400] [--out FILE] [--tune] [--parts compare,decoding] [--smoke]

bfloat16, causal, D = 16 and values of 64 (softmax: 64 and 64), three terms, 16 heads, inputs as layers make them. Times
are medians by device events after a warm-up, in ns per token and head, of everyone in two forms: `captured`, a CUDA
graph of several calls with inputs that take turns so that they are not in the cache, which is what training does and
what figures are judged by; and `called`, one call after the other from Python. `floor` is how many times the memory
traffic of inputs and results, 320 bytes forward and 960 with the gradient, at 4.8 TB/s.
Everything is first compared with the formula in float64, and nothing is timed that is wrong. Rows are written to the
file as they come; when the budget of seconds is spent, what is left is named and skipped. `--tune` tries blocks before
anything else and goes on with the best. `--smoke` runs tiny sizes on a CPU:
TRITON_INTERPRET=1 python benchmarks/taylor_gpu.py --smoke.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from peers import chunked_taylor, fla_based
from peers.captured import Bench, Work
from peers.taylor_distances import formula, of_decoding, of_form
from tiebreak.layers import taylor, taylor_triton
from tiebreak.layers.kernels import taylor_backward, taylor_decode, taylor_forward, taylor_plan, taylor_states
from tiebreak.layers.taylor_forms import How, naive
from tiebreak.layers.taylor_triton import indices

D, V, SCALE = 16, 64, 0.25
FLOOR = {"forward": 0.067, "both": 0.200}  # ns per token and head
FLA = "flash-linear-attention, fused_chunk_based"
QUOTED = [  # issue 22: measured on an H200, not on this machine now
    (FLA, {"8 forward": 2.87, "8 both": 15.7, "1 forward": 13.4, "1 both": 66}),
    ("ThunderKittens based (forward only, no normaliser)", {"8 forward": 0.37, "1 forward": 3.1}),
]
# Rows, rows of the other side, features, warps, stages, registers, whether descriptors copy tiles. More than one stage
# only with those: Triton 3.6 does not fence other copies before wgmma reads them.
CHOICES: dict[str, list[tuple[Any, ...]]] = {
    "states": [
        (64, 64, 64, 4, 3, None, True),
        (64, 64, 64, 4, 4, None, True),
        (128, 64, 64, 4, 2, None, True),
        (32, 64, 64, 4, 3, None, True),
        (32, 64, 64, 4),
    ],
    "forward": [
        (64, 64, 32, 4, 3, None, True),
        (64, 64, 32, 4, 4, None, True),
        (128, 64, 32, 8, 3, 128, True),
        (64, 64, 32, 4),
    ],
    "queries": [(64, 64, 32, 4), (64, 64, 32, 4, 1, 128), (64, 32, 32, 4), (128, 64, 32, 8, 1, 128)],
    "keys": [(64, 32, 32, 4, 1, 128), (64, 32, 32, 4), (64, 16, 32, 4), (128, 32, 32, 8, 1, 128)],
    "scan": [(1024,), (2048,), (512,)],
}
DECODE_BLOCKS = [(32, 8), (64, 8), (16, 8), (32, 4), (16, 4), (64, 4)]  # columns of the state at once, warps
COMPILER = "plain PyTorch, chunked, compiled"
COMPILED = (256, 1024)  # of the short lengths: compiling takes long
PEER_BOUND = 2e-2  # in bfloat16: plain PyTorch rounds features and weights
SIZES = [(8, 4096), (1, 2048), (1, 4096), (8, 2048), (1, 16384), (8, 16384), (1, 65536)]  # batch, length
PARTS = ("compare", "decoding", "short", "host", "profile")
CACHE = 200e6  # bytes of inputs that take turns: four times the cache of an H200


def turns(each: int) -> int:
    """How many sets of inputs of so many bytes take turns; three calls at least are in a graph."""
    return max(3, min(40, ceil(CACHE / each)))


def inputs(bench: Bench, batch: int, length: int, widths: tuple[int, ...]) -> list[Tensor]:
    """Fresh [B, H, L, width], as the projections of a layer leave them: heads between length and width."""
    shapes = ((batch, length, bench.heads, width) for width in widths)
    drawn = [torch.randn(shape, device=bench.device, dtype=torch.bfloat16) for shape in shapes]
    return [each.transpose(1, 2) for each in drawn]


def plan_of(batch: int, heads: int, tuning: Any = None, segment: int | None = None) -> taylor_plan.Plan:
    return taylor_plan.Plan(batch, heads, D, V, 3, True, SCALE, torch.bfloat16, tuning, segment)


def check(bench: Bench, tuning: Any = None, segment: int | None = None, length: int = 1337) -> float:
    """The largest distance of the result and the gradients from the formula in float64."""
    if bench.smoke:  # several segments of a few tokens
        length, segment = 70, 32
        tuning = {name: taylor_plan.Tuning(32, 32, 64) for name in taylor_plan.TUNING}
    q, k, v, above = inputs(bench, 1, length, (D, D, V, V))
    plan = plan_of(1, q.shape[1], tuning, segment)
    result = taylor_forward.forward(plan, q, k, v, None)
    found = [result[0], *taylor_backward.backward(plan, q, k, v, None, result, above)]
    exact = [each.double().requires_grad_() for each in (q, k, v)]
    out = naive(exact[0], exact[1], exact[2], None, How(3, SCALE, True, 64, torch.float64))
    wanted = [out.detach(), *torch.autograd.grad(out, exact, above.double())]
    return max(float((a.double() - b).norm() / b.norm()) for a, b in zip(found, wanted, strict=True))


def works(form: Callable[..., Tensor], given: list[Tensor]) -> dict[str, Work]:
    """Forward alone, and with gradients."""
    *three, above = given
    needing = [each.detach().requires_grad_() for each in three]

    def both() -> object:
        return torch.autograd.grad(form(*needing), needing, above)

    return {"forward": torch.no_grad()(lambda: form(*three)), "both": both}


def ours(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return taylor.attend(q, k, v, causal=True, form="triton")


def softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def compare_first(bench: Bench) -> set[str]:
    """Nothing is timed that is wrong: stops where ours is, and returns the peers that are."""
    found = {"decoding": of_decoding(bench.device)}
    for name, (form, widths) in sides().items():
        found[name] = of_form(form, form if form is softmax else formula, inputs(bench, 1, 300, widths))
    bench.add(case="distances from the formulas in float64", **found)
    wrong = {name for name, distance in found.items() if not distance < PEER_BOUND}
    if own := wrong & {"decoding", "ours"}:
        raise SystemExit(f"wrong, so nothing is worth timing: {', '.join(sorted(own))}")
    return wrong


def repeated(bench: Bench, tuning: Any, times: int = 100) -> None:
    """Nothing depends on the order of threads: where bits differ, a product read memory before it was written."""
    if bench.smoke:
        return
    q, k, v, above = inputs(bench, 8, 2048, (D, D, V, V))
    plan, first = plan_of(8, bench.heads, tuning), None
    differ = torch.zeros(4, device="cuda", dtype=torch.int64)
    for _ in range(times):
        result = taylor_forward.forward(plan, q, k, v, None)
        found = [result[0], *taylor_backward.backward(plan, q, k, v, None, result, above)]
        first = first or found
        differ += torch.stack([(a != b).any() for a, b in zip(first, found, strict=True)])
    if differ.any():
        raise AssertionError(f"of {times} times, out, dq, dk, dv differed {differ.tolist()}")


def passes_of(bench: Bench, batch: int, length: int) -> Callable[..., Work]:
    """Makes the calls that show a kernel's time: its name and blocks give a function without arguments."""
    q, k, v, above = inputs(bench, batch, length, (D, D, V, V))
    result = taylor_forward.forward(plan_of(batch, bench.heads), q, k, v, None)

    def make(name: str, tuning: Any) -> Work:
        plan = plan_of(batch, bench.heads, tuning)
        if name == "forward":
            return lambda: taylor_forward.forward(plan, q, k, v, None)
        if name in ("queries", "keys"):
            return lambda: taylor_backward.backward(plan, q, k, v, None, result, above)
        return lambda: (
            taylor_states.states(plan, k, v),
            taylor_states.states(plan, q, above, gradient=(result[1], result[1])),
        )

    return make


def tune_one(bench: Bench, make: Callable[..., Work], name: str, best: dict[str, Any]) -> dict[str, Any]:
    """The best blocks of one kernel among those that are right and give the same bits every time."""
    sides: dict[str, list[Work]] = {}
    for choice in (taylor_plan.Tuning(*each) for each in CHOICES[name]):
        if not bench.open(f"tuning {name} {choice}"):
            continue
        tried = {**best, name: choice}
        try:
            distance = check(bench, tried, length=1344)
            if not distance < 5e-3:
                raise AssertionError(f"{distance:.2g} away from the formula")
            repeated(bench, tried)
            sides[str(choice)] = [make(name, tried)] * 3
        except Exception as error:  # a choice may not fit into shared memory: a row says so, the next is tried
            bench.add(case=f"tuning {name}", blocks=str(choice), failed=f"{type(error).__name__}: {error}"[:300])
            if "CUDA error" in str(error):
                raise
    times = bench.interleaved(sides)
    for blocks, ms in sorted(times.items(), key=lambda pair: pair[1]):
        bench.add(case=f"tuning {name}", blocks=blocks, ms=round(ms, 4))
    found = next(
        each
        for each in (taylor_plan.Tuning(*each) for each in CHOICES[name])
        if str(each) == min(times, key=lambda each: times[each])
    )
    return {**best, name: found}


def tune(bench: Bench, batch: int, length: int) -> None:
    """Try blocks kernel by kernel; the best become `taylor_plan.TUNING`."""
    make, best = passes_of(bench, batch, length), dict(taylor_plan.TUNING)
    for name in CHOICES:
        best = tune_one(bench, make, name, best)
    use(bench, best)


def use(bench: Bench, best: dict[str, Any]) -> None:
    """From now on every plan has these blocks."""
    taylor_plan.TUNING.update(best)
    taylor_triton._plan_of.cache_clear()
    bench.add(case="tuning, best blocks", blocks={name: str(each) for name, each in best.items()})


def short(bench: Bench, batch: int, lengths: Sequence[int]) -> None:
    """Ours, `naive` and `chunked` of `attend`, and plain PyTorch compiled: where `auto` should take ours."""
    forms: dict[str, Callable[..., Tensor]] = {
        form: partial(taylor.attend, causal=True, form=form) for form in ("triton", "naive", "chunked")
    }
    for length in lengths:
        if not bench.smoke and length in COMPILED:
            torch._dynamo.reset()
            forms["compiled"] = torch.compile(chunked_taylor.attend, dynamic=False)
        elif "compiled" in forms:
            del forms["compiled"]
        given = inputs(bench, batch, length, (D, D, V, V))
        for passes in ("forward", "both"):
            if not bench.open(f"short, L = {length}, {passes}"):
                return
            kinds = {name: works(form, given)[passes] for name, form in forms.items()}
            row = {name: round(bench.milliseconds(work), 4) for name, work in kinds.items()}
            bench.add(case="short, called, ms", batch=batch, length=length, passes=passes, **row)
            still = {name: [work] * 3 for name, work in kinds.items() if name != "chunked"}  # it asks the device
            row = {name: round(ms, 4) for name, ms in bench.interleaved(still).items()}
            bench.add(case="short, captured, ms", batch=batch, length=length, passes=passes, **row)


def profile(bench: Bench, batch: int, length: int) -> None:
    """Microseconds of every kernel of one forward and backward pass."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    work = works(ours, inputs(bench, batch, length, (D, D, V, V)))["both"]
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    with profiler(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(5):
            work()
        torch.cuda.synchronize()
    kernels = {each.key[:60]: [each.count // 5, round(each.device_time_total / 5, 1)] for each in found.key_averages()}
    bench.add(case="profile, forward and backward", batch=batch, length=length, kernels=kernels)


def sides() -> dict[str, tuple[Callable[..., Tensor], tuple[int, ...]]]:
    """Whom to compare, with the widths of their inputs."""
    found: dict[str, tuple[Callable[..., Tensor], tuple[int, ...]]] = {
        "ours": (ours, (D, D, V, V)),
        "torch SDPA, d = 64": (softmax, (V, V, V, V)),
        COMPILER: (chunked_taylor.attend, (D, D, V, V)),
    }
    if importlib.util.find_spec("fla") and torch.cuda.is_available():
        found[FLA] = (fla_based.attend, (D, D, V, V))
    return found


def compare(bench: Bench, batch: int, length: int, name: str) -> None:
    """One side at one size, captured and called."""
    form, widths = sides()[name]
    if form is chunked_taylor.attend and not bench.smoke:
        torch._dynamo.reset()  # each size is compiled for itself, or the limit of compilations is soon reached
        form = torch.compile(form, dynamic=False)
    sets = turns(batch * length * bench.heads * sum(widths) * 2)
    given = [inputs(bench, batch, length, widths) for _ in range(1 if bench.smoke else min(sets, 8))]
    kinds = [works(form, each) for each in given]
    for passes in ("forward", "both"):
        if not bench.open(f"{name}, B = {batch}, L = {length}, {passes}"):
            return
        row: dict[str, object] = {}
        per = 1e6 / (batch * bench.heads * length)
        ns = bench.captured([kinds[turn % len(kinds)][passes] for turn in range(sets)]) * per
        row = {"ns": round(ns, 4), "floor": round(ns / FLOOR[passes], 2)}
        row["ns called"] = round(bench.milliseconds(kinds[0][passes]) * per, 4)
        more = extra_memory(kinds[0][passes], given[0], passes) if name == "ours" and not bench.smoke else {}
        bench.add(case=name, batch=batch, length=length, passes=passes, **row, **more)


def quoted(bench: Bench, batch: int) -> None:
    """The figures of others, from the issue, where they are not measured here."""
    for name, figures in QUOTED:
        if name in sides():
            continue
        for passes in ("forward", "both"):
            if f"{batch} {passes}" in figures:
                bench.add(case=name, batch=batch, passes=passes, ns=figures[f"{batch} {passes}"], quoted="issue 22")


def host(bench: Bench) -> None:
    """Microseconds of Python in one call: at a size that the device is done with sooner."""
    for passes, work in works(ours, inputs(bench, 1, 1024, (D, D, V, V))).items():
        for _ in range(20):
            work()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(100):
            work()
        bench.add(case="Python in one call", passes=passes, us=round(1e4 * (time.perf_counter() - start), 1))
        torch.cuda.synchronize()


def extra_memory(work: Work, given: list[Tensor], passes: str) -> dict[str, float]:
    """Peak memory beside inputs and results (and gradients), as a share of their bytes."""
    held = sum(each.nbytes for each in given)  # q, k, v and the gradient of the result, as large as the result
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    results = given[-1].nbytes if passes == "forward" else held
    extra = torch.cuda.max_memory_allocated() - before - results
    return {"extra_memory": round(extra / (held if passes == "forward" else 2 * held), 4)}


def decoding(bench: Bench, heads: int, choices: Sequence[tuple[int, int] | None] = (None,)) -> None:
    """One token, against reading and writing the state once."""
    count = 1 if bench.smoke else turns(heads * 153 * (V + 1) * 4)
    states = [torch.zeros(heads, 153, V + 1, device=bench.device) for _ in range(count)]
    q, k, v = (torch.randn(heads, width, device=bench.device) for width in (D, D, V))
    table = indices(D, states[0].device)
    once = bench.captured([partial(state.add_, 1e-9) for state in states])
    for blocks in choices:
        token = [partial(taylor_decode.decode, state, (q, k, v), None, SCALE, table, blocks=blocks) for state in states]
        try:
            found = bench.captured(token)
        except Exception as error:  # as in `tune`
            bench.add(case="decoding", heads=heads, blocks=blocks, failed=f"{type(error).__name__}: {error}"[:300])
            continue
        row = {"us": round(1000 * found, 2), "over_read_and_write": round(found / once, 3)}
        bench.add(case="decoding", heads=heads, blocks=blocks, **row)


def sizes(smoke: bool) -> Iterator[tuple[int, int]]:
    yield from [(1, 40)] if smoke else SIZES


def measure(bench: Bench, parts: Sequence[str], without: set[str], *, tuned: bool) -> None:
    """The parts, in this order; what the compiler makes of plain PyTorch comes last, since compiling takes long."""
    for name in [each for each in sides() if each not in without] if "compare" in parts else ():
        for batch, length in sizes(bench.smoke) if name != COMPILER else ():
            compare(bench, batch, length, name)
    for batch in (8, 1) if "compare" in parts else ():
        quoted(bench, batch)
    for heads in ((3,) if bench.smoke else (128, 2048, 8192)) if "decoding" in parts else ():
        if bench.open(f"decoding, {heads} heads"):
            decoding(bench, heads, DECODE_BLOCKS if tuned and not bench.smoke else (None,))
    if "short" in parts:
        short(bench, 1 if bench.smoke else 8, (40,) if bench.smoke else (64, 128, 256, 512, 1024, 2048))
    if "host" in parts and not bench.smoke:
        host(bench)
    for batch, length in ((8, 4096), (8, 16384), (1, 16384)) if "profile" in parts and not bench.smoke else ():
        profile(bench, batch, length)
    for batch, length in sizes(bench.smoke) if "compare" in parts and COMPILER not in without else ():
        compare(bench, batch, length, COMPILER)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--budget", type=float, default=400.0)
    parser.add_argument("--out", type=Path, default=Path("taylor_gpu.json"))
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    bench = Bench(args.out, args.smoke, time.monotonic() + args.budget, [])
    torch.manual_seed(0)
    device = "interpreter" if args.smoke else torch.cuda.get_device_name()
    bench.add(device=device, torch=torch.__version__, command=" ".join(["python", *sys.argv]))
    distance = check(bench)
    bench.add(case="distance from the formula in float64", largest=distance)
    if not distance < 5e-3:
        raise SystemExit(f"the kernels are {distance:.2g} away from the formula: nothing is worth timing")
    without = compare_first(bench)
    if args.tune:
        tune(bench, *((1, 40) if args.smoke else (8, 4096)))
    measure(bench, args.parts.split(","), without, tuned=args.tune)


if __name__ == "__main__":
    main()
