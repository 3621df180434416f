"""Taylor attention against softmax attention: time, growth with the length, memory.

    python benchmarks/attention.py [--rounds 9] [--save]

One core, float32, causal, forward and backward, one sequence: D = 16 and values of 64 for Taylor with three terms, 64
and 64 for torch's kernel of softmax attention. Everything is interleaved in one process. First each side is checked
against its own definition, gradients included; otherwise nothing is timed. `ratio` is how many times longer the peer
takes. An exponent is the slope of log time over log length through the medians; its interval is the 95 % t interval of
the slopes of the rounds. Memory is what torch's allocator hands out, from the profiler.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from scipy import stats
from torch import Tensor

import timing
from tiebreak.layers import attention, taylor

D, V, TERMS = 16, 64, 3
Rows = list[dict[str, object]]


def inputs(length: int, size: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(1, 1, length, each, dtype=dtype).requires_grad_() for each in (size, size, V)]


def chunked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return taylor.attend(q, k, v, terms=TERMS, causal=True, form="chunked")


def naive(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return taylor.attend(q, k, v, terms=TERMS, causal=True, form="naive")


def kernel(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def formula(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attention.attend_naive(q, k, v, causal=True)


def work(form: Callable[..., Tensor], length: int, size: int) -> Callable[[], None]:
    given = inputs(length, size)
    above = torch.ones(1, 1, length, V)

    def once() -> None:
        torch.autograd.grad(form(*given), given, above)

    return once


def check_equal(form: Callable[..., Tensor], reference: Callable[..., Tensor], size: int, length: int) -> None:
    """Result and gradients against the definition in float64."""
    found = []
    for each, dtype in ((form, torch.float32), (reference, torch.float64)):
        given = inputs(length, size, torch.float32)
        given = [tensor.detach().to(dtype).requires_grad_() for tensor in given]
        out = each(*given)
        above = torch.arange(out.numel(), dtype=torch.float64).sin().view_as(out).to(dtype)
        found.append([out.detach(), *torch.autograd.grad(out, given, above)])
    for ours, exact in zip(*found, strict=True):
        distance = float((ours - exact).abs().max() / exact.abs().max())
        if distance > 1e-5:
            raise SystemExit(f"{form.__name__} is {distance:g} away from {reference.__name__}: nothing is worth timing")


def ratio(case: str, length: int, peer: tuple[str, Callable[..., Tensor], int], rounds: int) -> dict[str, object]:
    name, form, size = peer
    ours_s, peer_s, ours_over_peer = timing.interleaved(work(chunked, length, D), work(form, length, size), rounds)
    return {
        "benchmark": "attention",
        "case": f"{case}, L = {length}",
        "n": length,
        "ours_ms": round(1000 * ours_s, 2),
        "peer": name,
        "peer_ms": round(1000 * peer_s, 2),
        "ratio": round(1 / ours_over_peer, 2),
    }


def exponent(form: Callable[..., Tensor], size: int, lengths: list[int], rounds: int) -> dict[str, object]:
    works = [work(form, length, size) for length in lengths]
    times: list[list[float]] = []
    for _ in range(rounds + 1):
        times.append([])
        for each in works:
            start = time.perf_counter()
            each()
            times[-1].append(time.perf_counter() - start)
    logs = np.log(np.array(times[1:]))  # the first round warms up
    axis = np.log(np.array(lengths))
    slopes = np.polyfit(axis, logs.T, 1)[0]
    half = float(stats.t.ppf(0.975, rounds - 1)) * statistics.stdev(slopes.tolist()) / math.sqrt(rounds)
    fitted, middle = float(np.polyfit(axis, np.median(logs, axis=0), 1)[0]), statistics.mean(slopes.tolist())
    return {
        "benchmark": "attention",
        "case": f"exponent in L of {form.__name__}, L = {lengths[0]} to {lengths[-1]}",
        "n": lengths[-1],
        "exponent": round(fitted, 3),
        "interval": [round(middle - half, 3), round(middle + half, 3)],
        "medians_ms": [round(1000 * math.exp(each), 1) for each in np.median(logs, axis=0)],
        "lengths": lengths,
    }


def memory(length: int) -> dict[str, object]:
    """What the allocator holds at most, beyond q, k, v, the result, its gradient and theirs."""
    work(chunked, 1024, D)()  # tables are made once
    given, above = inputs(length, D), torch.ones(1, 1, length, V)
    with torch.profiler.profile(profile_memory=True) as profile:
        out = chunked(*given)
        gradients = torch.autograd.grad(out, given, above)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "trace.json")
        profile.export_chrome_trace(str(trace))
        events = [each for each in json.loads(trace.read_text())["traceEvents"] if each.get("name") == "[memory]"]
    held = np.cumsum([each["args"]["Bytes"] for each in sorted(events, key=lambda each: each["args"]["Ev Idx"])])
    before = [*given, above]
    plain = sum(each.nbytes for each in (*before, out, *gradients))
    peak = int(held.max()) + sum(each.nbytes for each in before)
    return {
        "benchmark": "attention",
        "case": f"peak memory of chunked, forward and backward, L = {length}",
        "n": length,
        "peak_bytes": peak,
        "inputs_outputs_gradients_bytes": plain,
        "growth": round(peak / plain - 1, 4),
    }


def streaming(tokens: int) -> dict[str, object]:
    """The state, and the time of a token, at the start and at the end of a stream."""
    state, took = taylor.init_state(D, V, terms=TERMS), []
    sizes = [state.untyped_storage().nbytes()]
    q, k, v = (each.detach()[0, 0] for each in inputs(tokens, D))
    for t in range(tokens):
        start = time.perf_counter()
        _, state = taylor.step(state, q[t], k[t], v[t], terms=TERMS)
        took.append(time.perf_counter() - start)
        sizes.append(state.untyped_storage().nbytes())
    part = tokens // 8
    return {
        "benchmark": "attention",
        "case": f"streaming, {tokens} tokens",
        "n": tokens,
        "state_bytes": sorted(set(sizes)),
        "first_tokens_ms": round(1000 * statistics.median(took[:part]), 4),
        "last_tokens_ms": round(1000 * statistics.median(took[-part:]), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--save", action="store_true", help="keep the rows in benchmarks/results/attention.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    check_equal(chunked, naive, D, 1025)
    check_equal(naive, naive, D, 1025)
    check_equal(kernel, formula, V, 1025)
    softmax = "torch SDPA, softmax, d = 64"
    rows: Rows = [
        *(ratio("chunked", length, (softmax, kernel, V), arguments.rounds) for length in (4096, 8192, 16384)),
        ratio("chunked", 4096, ("naive Taylor, quadratic", naive, D), arguments.rounds),
        exponent(chunked, D, [4096, 8192, 16384, 32768, 65536], arguments.rounds),
        exponent(kernel, V, [4096, 8192, 16384], arguments.rounds),
        memory(4096),
        memory(65536),
        streaming(8192),
    ]
    for item in rows:
        print(", ".join(f"{key} {value}" for key, value in item.items() if key not in ("benchmark", "n")))
    if arguments.save:
        print(timing.save("attention", rows))


if __name__ == "__main__":
    main()
