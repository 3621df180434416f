"""Are the peers equal, and how fast is each? Run from benchmarks/ with the source on the path:

    PYTHONPATH=../src python -m peers.check [--design cnn-strided] [--runs 3] [--batch 8] [--device cuda]

Every peer that this machine can run takes CHECKED steps from the same start with the same dropout masks; printed are
its distances from the eager runs. Then it is timed, with the dropout that suits it. A peer whose median distance is
above LIMIT ends the check with an error; JAX's "default" precision is only timed.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import torch

from peers.eager import Eager
from peers.problem import Floats, Peer, Problem, distances, make_problem
from peers.solo_graph import SoloGraph

CHECKED, TIMED, ROUNDS, LIMIT = 5, 100, 5, 1e-5
Case = tuple[str, Callable[[], Peer] | None, Callable[[], Peer]]  # name, the form to check, the form to time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", default="cnn-pool", choices=["cnn-pool", "cnn-strided"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    problem = make_problem(given.design, given.runs, given.batch, TIMED)
    expected = eager_parameters(problem, given.device)
    print(f"{given.design}, {given.runs} runs, batch {given.batch}, {given.device}; torch {torch.__version__}")
    print(f"from the start: {compare(problem.params, expected)[1]}")
    right = True
    for name, checked, timed in cases(problem, given.device):
        near, said = True, "not compared"
        if checked is not None:
            near, said = compare(after(checked()), expected)
        print(f"{name:34} {said:36} {timing(timed())}", flush=True)
        right = right and near
    if importlib.util.find_spec("pytorch_lightning"):
        from peers import lightning_run

        near, said = compare(lightning_run.train(problem.alone(0), CHECKED - 1, warm_up=1, hashed=True)[1], expected)
        seconds = lightning_run.lightning_seconds(problem.alone(0), ROUNDS * TIMED)
        print(f"{'lightning (cpu)':34} {said:36} {1000 * seconds / (ROUNDS * TIMED):.4f} ms/step")
        right = right and near
    if not right:
        raise SystemExit(f"a peer is further away than {LIMIT}")


def cases(problem: Problem, device: str) -> Iterator[Case]:
    first = problem.alone(0)
    yield "eager", partial(Eager, first, device, hashed=True), partial(Eager, first, device)
    if torch.cuda.is_available():
        yield "graph", partial(SoloGraph, first, block=CHECKED, hashed=True), partial(SoloGraph, first)
    if importlib.util.find_spec("jax"):
        from peers.jax_cohort import LAYOUTS, PRECISIONS, JaxCohort

        for precision, layout, outer in itertools.product(PRECISIONS, LAYOUTS, (False, True)):
            make = partial(JaxCohort, problem, precision=precision, layout=layout, outer=outer)
            name = f"jax, {precision}, {layout}{', outer' if outer else ''}"
            yield name, partial(make, scan=CHECKED) if precision == "highest" else None, make


def eager_parameters(problem: Problem, device: str) -> dict[str, Floats]:
    """What all peers should come to: each run alone."""
    found = [after(Eager(problem.alone(run), device, hashed=True)) for run in range(len(problem.lr))]
    return {name: np.concatenate([params[name] for params in found]) for name in found[0]}


def after(peer: Peer) -> dict[str, Floats]:
    peer.prepare()
    peer.run(CHECKED)
    return peer.parameters()


def compare(found: Mapping[str, Floats], expected: Mapping[str, Floats]) -> tuple[bool, str]:
    """Whether the bulk of the runs found, which are the first of those expected, is near; and in words."""
    count = len(found["out.bias"])
    away = distances(found, {name: values[:count] for name, values in expected.items()})
    return bool(np.median(away) <= LIMIT), f"distance {np.median(away):.0e}, at worst {away.max():.0e}"


def timing(peer: Peer) -> str:
    start = time.perf_counter()
    peer.prepare()
    prepared = time.perf_counter() - start
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        peer.run(TIMED)
        times.append(1000 * (time.perf_counter() - start) / TIMED)
    return f"{statistics.median(times):.4f} ms/step, prepared in {prepared:.1f} s"


if __name__ == "__main__":
    main()
