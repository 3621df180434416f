"""What fusing gains: a cohort as one computation against n runs one after the other, in the same process, in turns.

    python benchmarks/fused.py gpu [--peers eager,graph,jax] [--precision tf32] [--save NAME]    the CNN of the reports
    python benchmarks/fused.py cpu [--save NAME]                               two designs on one CPU core
    python benchmarks/fused.py study --data-dir DIR [--save NAME]              180 runs on MNIST against one eager run

A ratio is the peer's time for the same n runs over ours. Before anything is timed, a few steps from the same start with
the same dropout masks must lead to the same parameters; otherwise no ratio is printed. Peers are given every advantage
(see benchmarks/peers). Our time is that of whole epochs, the making of batches included. With `--precision tf32` ours
is timed with TF32 products, as JAX's are by default; the comparison before it is in float32.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

import timing
from peers.eager import Eager
from peers.ours import Ours
from peers.problem import Design, Peer, Problem, distances, make_problem
from peers.solo_graph import SoloGraph

STEPS, CHECKED, COMPARED, LIMIT = 400, 5, 6, 1e-5  # steps timed, steps checked, runs compared with eager ones
GPU_CASES: tuple[tuple[Design, int, int], ...] = (
    ("cnn-pool", 30, 8),
    ("cnn-pool", 100, 8),
    ("cnn-pool", 300, 8),
    ("cnn-pool", 100, 64),
    ("cnn-strided", 100, 8),
)
Work = Callable[[], object]


def problem_of(design: Design, n: int, batch: int, steps: int) -> Problem:
    return make_problem(design, n, batch, steps, examples=steps * batch)


def check(design: Design, n: int, batch: int, device: str) -> None:
    """Ours against eager runs with the same masks, for some of the runs."""
    problem = problem_of(design, n, batch, CHECKED)
    ours = Ours(problem, device)
    ours.run()
    found = ours.parameters()
    away = []
    for run in np.linspace(0, n - 1, min(n, COMPARED)).astype(int):
        eager = Eager(problem.alone(int(run)), device, hashed=True)
        eager.run(CHECKED)
        expected = eager.parameters()
        away.append(float(distances({name: values[run : run + 1] for name, values in found.items()}, expected)[0]))
    if np.median(away) > LIMIT:
        raise SystemExit(
            f"{design}, n={n}: ours and eager disagree by {np.median(away):.1e}: no ratio is worth printing"
        )


def in_turns(works: dict[str, tuple[Work, int]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds a step of every piece of work (and how many steps it is), round by round."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for round_number in range(rounds + 1):
        for name, (work, steps) in works.items():
            start = time.perf_counter()
            work()
            if round_number:  # the first round warms up
                times[name].append(1000 * (time.perf_counter() - start) / steps)
    return times


def rows_of(case: str, n: int, times: dict[str, list[float]], factors: dict[str, int]) -> list[dict[str, object]]:
    """A row for every peer: its time for as many runs as ours has, over ours."""
    ours = times["ours"]
    rows: list[dict[str, object]] = []
    for name, factor in factors.items():
        ratios = [factor * peer / own for peer, own in zip(times[name], ours, strict=True)]
        rows.append(
            {
                "benchmark": "fused",
                "case": case,
                "n": n,
                "ours_ms": round(statistics.median(ours), 4),
                "peer": name if factor == 1 else f"{factor} x {name}",
                "peer_ms": round(factor * statistics.median(times[name]), 4),
                "ratio": round(statistics.median(ratios), 2),
            }
        )
        print(f"{case}: n={n} ours {rows[-1]['ours_ms']} ms/step; {rows[-1]['peer']} {rows[-1]['peer_ms']} ms;"
              f" ratio {rows[-1]['ratio']}", flush=True)  # fmt: skip
    return rows


def gpu(
    peers: list[str], cases: tuple[tuple[Design, int, int], ...], rounds: int, precision: str
) -> list[dict[str, object]]:
    rows = []
    for design, n, batch in cases:
        allow_tf32(False)
        check(design, n, batch, "cuda")
        allow_tf32(precision == "tf32")
        problem = problem_of(design, n, batch, STEPS)
        ours = Ours(problem, "cuda")
        works: dict[str, tuple[Work, int]] = {"ours": (ours.run, STEPS)}
        factors: dict[str, int] = {}
        for name, factor, peer, steps in _peers(peers, problem):
            peer.prepare()
            works[name], factors[name] = (partial(peer.run, steps), steps), factor
        how = "" if precision == "float32" else f", {precision}"
        rows += rows_of(f"{design}, batch {batch}{how}", n, in_turns(works, rounds), factors)
        del ours, works
        torch.cuda.empty_cache()
    return rows


def allow_tf32(allowed: bool) -> None:
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allowed


def _peers(names: list[str], problem: Problem) -> list[tuple[str, int, Peer, int]]:
    n, found = len(problem.lr), list[tuple[str, int, Peer, int]]()
    if "eager" in names:
        found.append(("eager run", n, Eager(problem.alone(0), "cuda"), 100))
    if "graph" in names:
        found.append(("solo CUDA graph run", n, SoloGraph(problem.alone(0)), 200))
    if "jax" in names:
        from peers.jax_cohort import LAYOUTS, JaxCohort

        for layout in LAYOUTS:
            found.append((f"JAX TF32 {layout}", 1, JaxCohort(problem, precision="default", layout=layout), 200))
        found.append(("JAX float32 rows", 1, JaxCohort(problem, precision="highest", layout="rows"), 200))
    return found


def cpu(rounds: int) -> list[dict[str, object]]:
    """One core: 16 runs fused, in the cohorts of 8 that each of two workers would train, against the loop."""
    rows = []
    designs: tuple[Design, ...] = ("cnn-strided", "cnn-pool")
    for design in designs:
        check(design, 4, 8, "cpu")
        problem = problem_of(design, 16, 8, 60)
        ours, loop = Ours(problem, "cpu"), Ours(problem, "cpu", looped=True)
        eager = Eager(problem.alone(0), "cpu")
        works: dict[str, tuple[Work, int]] = {"ours": (ours.run, 60), "our loop": (loop.run, 60)}
        works["eager run"] = partial(eager.run, 60), 60
        times = in_turns(works, rounds)
        rows += rows_of(f"{design}, batch 8, one core", 16, times, {"our loop": 16, "eager run": 16})
        if find_spec("pytorch_lightning"):
            rows += lightning(problem, design, statistics.median(times["our loop"]))
        else:
            print("Lightning is left out, since it is not installed: pip install -c constraints.txt pytorch-lightning")
    return rows


def lightning(problem: Problem, design: str, loop_ms: float) -> list[dict[str, object]]:
    """Lightning's time for one run over our loop's. Not in turns: its trainer cannot be stopped and continued."""
    from peers.lightning_run import lightning_seconds

    steps = 300
    peer = 1000 * statistics.median(lightning_seconds(problem.alone(0), steps) for _ in range(3)) / steps
    case = f"{design}, batch 8, one core, one run"
    print(f"{case}: our loop {loop_ms:.3f} ms/step; Lightning {peer:.3f} ms; ratio {peer / loop_ms:.2f}", flush=True)
    return [
        {
            "benchmark": "fused",
            "case": case,
            "n": 1,
            "ours_ms": round(loop_ms, 4),
            "peer": "Lightning, logging off",
            "peer_ms": round(peer, 4),
            "ratio": round(peer / loop_ms, 2),
        }
    ]


def study(data_dir: Path, device: str, seeds: int, epochs: int) -> list[dict[str, object]]:
    """180 runs, records and report included, against one eager run of as many steps (a tenth of them is timed)."""
    from tiebreak.api import run
    from tiebreak.drive.machine import Machine
    from tiebreak.drive.messages import Message, Note
    from tiebreak.study.schema import Study

    given = Study.load(str(Path(__file__).parent / "whole_study.toml")).changed(seeds=seeds, epochs=epochs)

    def listen(message: Message) -> None:
        if isinstance(message, Note):
            print(f"  {message.text}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        result = run(given, folder, machine=Machine(device=device, data_dir=data_dir), listen=listen)
        wall = time.perf_counter() - start
        done = sum(record.status == "done" for record in result.records.runs.values())
        print(f"{len(result.plan.runs)} runs, {done} done, report {result.report.stat().st_size} bytes: {wall:.1f} s")
        print(result.verdict.answer, flush=True)
        steps = -(-result.plan.data.sizes["train"] // 8) * epochs
    timed = max(STEPS, steps // 10 // STEPS * STEPS)
    eager = Eager(problem_of("cnn-pool", 1, 8, STEPS), device)
    eager.prepare()
    start = time.perf_counter()
    eager.run(timed)
    one = (time.perf_counter() - start) / timed * steps
    print(f"one eager run: {one:.1f} s for {steps} steps, from {timed} timed; ratio {one / wall:.2f}")
    return [
        {
            "benchmark": "fused",
            "case": f"whole study on MNIST, {epochs} epochs, batch 8, records and report included",
            "n": len(result.plan.runs),
            "done": done,
            "ours_ms": round(1000 * wall),
            "peer": f"one eager run of {steps} steps (training only, from {timed} timed)",
            "peer_ms": round(1000 * one),
            "ratio": round(one / wall, 2),
        }
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["gpu", "cpu", "study"])
    parser.add_argument("--peers", default="eager,graph", help="of: eager, graph, jax")
    parser.add_argument("--cases", type=int, nargs="*", help="numbers of the GPU cases; default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--precision", default="float32", choices=["float32", "tf32"], help="of our products")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--device", default="cuda", help="for study")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--save", help="keep the rows under this name in benchmarks/results")
    given = parser.parse_args()
    torch.set_num_threads(1)
    device, versions = "", {}
    if torch.cuda.is_available():
        allow_tf32(False)
        device, versions = torch.cuda.get_device_name(), {"triton": importlib.metadata.version("triton")}
        if "jax" in given.peers:
            versions["jax"] = importlib.metadata.version("jax")
    if given.what == "gpu":
        cases = tuple(GPU_CASES[number] for number in given.cases) if given.cases else GPU_CASES
        rows = gpu(given.peers.split(","), cases, given.rounds, given.precision)
    elif given.what == "cpu":
        rows = cpu(given.rounds)
    else:
        rows = study(given.data_dir, given.device, given.seeds, given.epochs)
    if given.save:
        print(timing.save(given.save, rows, device=device, versions=versions))


if __name__ == "__main__":
    main()
