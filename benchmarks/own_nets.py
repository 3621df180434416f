"""Networks as users bring them: our fused runs and our loop against plain torch and JAX, in one process.

    python benchmarks/own_nets.py [--nets vit,separable] [--runs 1,20,60] [--precision tf32] [--out FILE] [--budget 60]
    python benchmarks/own_nets.py --smoke            tiny sizes on a CPU: that everything runs and agrees

Times are milliseconds for a step **and run**. Before a peer is timed, a step of SGD in float32 from the same start
with the same batch must lead to the same parameters as ours; otherwise it has a distance and no time. Every row goes
into the file as soon as it is measured. `--budget` is what one row may take, in seconds, compiling included: after it
no further round of steps begins. `--peers` names the sides to measure; `alone` is one run in turns: our loop, ours
captured, plain eager, plain captured. Where minutes of a GPU are few, sides are prepared by processes of their own at
the same time, and timed one after the other: `--gate DIR` waits, prepared, for the file DIR/go and for a lock.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib.util
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from peers.own_designs import OWN_NETS, OwnNet
from peers.own_solo import Form, Solo
from tiebreak import catalog
from tiebreak.data.batches import epoch_batches
from tiebreak.layers.global_generators import seeded
from tiebreak.models.design import Design
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.study.registry import HYPERS
from tiebreak.study.schema import Optimiser
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop
from tiebreak.train.step import initial_state

# Steps of SGD before the comparison, and how far apart parameters may be. One step: a deep network with normalisation
# multiplies differences of rounding by some hundred in each further one.
CHECKED, LIMIT, RATE = 1, 1e-5, 0.01
ROUNDS = 5


class Case:
    """n runs of a network, and their data."""

    def __init__(self, name: str, n: int, given: argparse.Namespace, rule: str, steps: int) -> None:
        self.name, self.net, self.given, self.rule, self.n = name, OWN_NETS[name], given, rule, n
        self.shape = self.net.small if given.smoke else self.net.shape
        self.batch = min(self.net.batch, 4) if given.smoke else self.net.batch
        self.task = catalog.TASKS[self.net.task]
        examples = self.net.examples(self.shape, steps * self.batch, torch.Generator().manual_seed(0))
        self.split = {key: values.to(given.device) for key, values in examples.items()}
        hypers = {key: hyper.default for key, hyper in HYPERS.items()}
        self.runs = [
            Run(
                design=name, source="", build={}, task=self.net.task, options={}, data="", checksum="",
                optimiser=Optimiser.model_validate({"kind": rule}), hypers={**hypers, "lr": RATE},
                setting={"lr": RATE}, seed=seed, epochs=1_000_000, batch=self.batch, comparability=0,
                evaluations=({},), precision="bfloat16" if given.precision == "bf16" and rule == "adam" else None,
            )
            for seed in range(n)
        ]  # fmt: skip
        self.steps = steps

    def ours(self, *, looped: bool = False) -> tuple[Fused | Loop, list[Any]]:
        """Our engine, and the states of its runs."""
        design = Design(name=self.name, family=self.net.family, build=self.net.build, text_hash=f"own {self.name}")
        runs, states = self.runs[: 1 if looped else None], []
        for run in runs:
            network = design.network(self.shape, {}, stream(run.seed, "init")).to(self.given.device)
            states.append(initial_state(network, run))
        if looped:
            return Loop(self.task, network, runs[0], states[0]), states
        # A few steps are not worth compiling.
        return Fused(self.task, network, runs, states, compiled=None if self.steps > CHECKED else False), states

    def captured(self) -> Fused:
        """Our engine of one run without a run axis."""
        design = Design(name=self.name, family=self.net.family, build=self.net.build, text_hash=f"own {self.name}")
        network = design.network(self.shape, {}, stream(0, "init")).to(self.given.device)
        return Fused(self.task, network, self.runs[:1], [initial_state(network, self.runs[0])], alone=True)

    def batches(self, run: int) -> tuple[Tensor, Tensor]:
        """The examples [S, B] of the first epoch, and the weights [B] of a batch."""
        found = epoch_batches(run, 0, self.steps * self.batch, self.batch, shuffled=not self.task.ordered)
        return torch.from_numpy(found.indices), torch.from_numpy(found.weights[0]).float()

    def solo(self, form: Form, *, bf16: bool = False) -> Solo:
        """The first run in plain torch."""
        network = plain(self.net, self.shape, 0).to(self.given.device)
        return Solo(self.task, network, self.split, self.batches(0), form=form, lr=RATE, rule=self.rule, bf16=bf16)

    def jax(self, form: str, precision: str) -> Any:
        """All runs in JAX."""
        from peers.own_jax import JaxRuns

        each = [plain(self.net, self.shape, run).state_dict() for run in range(self.n)]
        names = [name for name, _ in plain(self.net, self.shape, 0).named_parameters()]
        params = {name: torch.stack([state[name] for state in each]).numpy() for name in names}
        indices = torch.stack([self.batches(run)[0] for run in range(self.n)], dim=1).numpy()
        data = {key: values.cpu().numpy() for key, values in self.split.items()}
        return JaxRuns(self.name, params, data, indices, lr=RATE, rule=self.rule, form=form, precision=precision)


def plain(net: OwnNet, shape: Any, run: int) -> torch.nn.Module:
    """The network as its file makes it, with the parameters of a run."""
    with seeded(stream(run, "init")):
        network = net.build(shape)
        network.eval()(*shape.inputs(2))
    return network.train()


def apart(found: dict[str, Any], wanted: dict[str, Any]) -> float:
    """The norm of the difference of all parameters, relative to the norm."""
    names = list(wanted)
    one, other = (np.concatenate([np.asarray(each[name]).ravel() for name in names]) for each in (found, wanted))
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def peers(case: Case) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Name, how many runs it trains, and what makes it; those that are to be measured."""
    yield from (each for each in all_peers(case) if not case.given.peers or each[0] in case.given.peers)


def all_peers(case: Case) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Name, how many runs it trains, and what makes it."""
    given, cuda = case.given, case.given.device == "cuda"
    bf16 = given.precision == "bf16" and case.rule == "adam"
    forms: tuple[Form, ...] = ("eager", "graph", "compiled+graph") if cuda else ("eager",)
    packs = case.name == "translator"  # packed sequences have no graph
    for form in forms if not packs else ("eager",):
        yield f"plain {form}", 1, partial(case.solo, form, bf16=bf16)
    if given.jax and importlib.util.find_spec("jax"):
        from peers.own_jax import FORMS

        chosen = FORMS if "net" in case.name or case.name == "separable" else FORMS[:1]
        precision = {"float32": "highest", "tf32": "default", "bf16": "bf16"}[given.precision]
        for way in chosen:
            yield f"JAX {way}", case.n, partial(case.jax, way, "highest" if case.rule == "sgd" else precision)


def check(name: str, n: int, given: argparse.Namespace) -> dict[str, float]:
    """How far every peer's parameters are from ours after a step of SGD in float32."""
    if given.peers == {"ours fused"}:
        return {}
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # torch's convolutions take TF32
    case = Case(name, n, given, "sgd", CHECKED)
    engine, states = case.ours()
    engine.train_epoch(case.split, lambda share, steps: None)
    found = {}
    for peer, runs, make in peers(case):
        made = make()
        if "graph" in peer:  # its warm-up trains: the eager form of the same steps is compared
            made.form = "eager"
        made.run(CHECKED)
        wanted = made.parameters()
        ours = {key: torch.stack([state.params[key] for state in states[:runs]]).cpu().numpy() for key in wanted}
        found[peer] = apart(ours if runs > 1 or "JAX" in peer else {key: v[0] for key, v in ours.items()}, wanted)
    if not given.peers or given.peers & {"our loop", "alone"}:
        loop, own = case.ours(looped=True)
        loop.train_epoch(case.split, lambda share, steps: None)
        found["our loop"] = apart({key: v.cpu() for key, v in states[0].params.items()}, own[0].params)
    return found


def pass_gate(given: argparse.Namespace) -> None:
    """Wait, if asked to, until all are prepared and no other process is timing; the lock is held to the end."""
    if given.gate is None or given.locked is not None:
        return
    (given.gate / f"ready-{os.getpid()}").touch()
    while not (given.gate / "go").exists():
        time.sleep(0.2)
    given.locked = (given.gate / "lock").open("w")
    fcntl.flock(given.locked, fcntl.LOCK_EX)


def alone(name: str, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One run: our loop and ours captured beside plain eager and plain captured, in turns."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = given.precision == "tf32"
    case = Case(name, 1, given, "adam", given.steps)
    works: dict[str, Callable[[int], object]] = {"our loop": epoch(case, case.ours(looped=True)[0])}
    if given.device == "cuda":
        works["ours captured"] = epoch(case, case.captured())
    for form, _, make in all_peers(case):
        if form in ("plain eager", "plain graph"):
            solo = make()
            solo.prepare()
            works[form] = solo.run
    for work in works.values():
        work(given.steps)
    pass_gate(given)
    times: dict[str, list[float]] = {side: [] for side in works}
    for _ in range(ROUNDS):
        for side, work in works.items():
            times[side].append(timed(work, given.steps, 1, 0.0))
    for side, each in times.items():
        yield {"benchmark": "own_nets", "net": name, "n": 1, "precision": given.precision, "peer": f"{side}, in turns",
               "ms": round(statistics.median(each), 4)}  # fmt: skip


def epoch(case: Case, engine: Any) -> Callable[[int], object]:
    """Train an epoch and wait for the device."""

    def work(steps: int) -> None:
        engine.train_epoch(case.split, lambda share, done: None)
        if case.given.device == "cuda":
            torch.cuda.synchronize()

    return work


def timed(work: Callable[[int], object], steps: int, runs: int, deadline: float) -> float:
    """Milliseconds for a step and run: the median of rounds, as many as fit."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work(steps)
        times.append(1000 * (time.perf_counter() - start) / steps / runs)
        if time.perf_counter() > deadline:
            break
    return statistics.median(times)


def rows(name: str, n: int, given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Ours fused, our loop and every peer."""
    if "alone" in given.peers:
        yield from alone(name, given)
    if given.peers == {"alone"}:
        return
    distances = check(name, n, given)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = given.precision == "tf32"
    case = Case(name, n, given, "adam", given.steps)
    made: list[tuple[str, int, Callable[[], Any]]] = [("ours fused", n, lambda: epoch(case, case.ours()[0]))]
    made.append(("our loop", 1, lambda: epoch(case, case.ours(looped=True)[0])))
    for peer, runs, make in [*made, *all_peers(case)]:
        if given.peers and peer not in given.peers:
            continue
        start = time.perf_counter()
        row: dict[str, Any] = {"benchmark": "own_nets", "net": name, "n": n, "precision": given.precision, "peer": peer}
        row["distance"] = distances.get(peer)  # from ours
        if distances.get(peer, 0.0) > LIMIT:
            yield {**row, "ms": None, "why": "its parameters are not ours"}
            continue
        work = make()
        if isinstance(work, Solo):
            work.prepare()
        call = work if callable(work) else work.run
        call(given.steps)  # traces, compiles, warms up
        row["prepared_s"] = round(time.perf_counter() - start, 1)
        pass_gate(given)
        deadline = time.perf_counter() + max(1.0, given.budget - row["prepared_s"])
        yield {**row, "ms": round(timed(call, given.steps, runs, deadline), 4)}
        del work, call
        if given.device == "cuda":
            torch.cuda.empty_cache()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join(OWN_NETS))
    parser.add_argument("--runs", default="1,20,60")
    parser.add_argument("--precision", default="tf32", choices=["float32", "tf32", "bf16"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=100, help="in a round")
    parser.add_argument("--budget", type=float, default=60, help="seconds that a row may take")
    parser.add_argument("--peers", default="", help="names of sides, such as 'ours fused,plain eager,JAX slices,alone'")
    parser.add_argument("--gate", type=Path, help="folder in which processes wait for each other")
    parser.add_argument("--out", type=Path, help="rows as JSON, written after every row")
    parser.add_argument("--no-jax", dest="jax", action="store_false")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, two runs, few steps, on a CPU")
    given = parser.parse_args()
    given.peers, given.locked = {each for each in given.peers.split(",") if each}, None
    if given.smoke:
        given.runs, given.device, given.steps, given.budget, given.precision = "2", "cpu", 2, 1.0, "float32"
    torch.set_num_threads(1 if given.device == "cpu" else torch.get_num_threads())
    where = torch.cuda.get_device_name() if given.device == "cuda" else "cpu"
    found: list[dict[str, Any]] = []
    for name in given.nets.split(","):
        for n in (int(each) for each in given.runs.split(",")):
            for row in rows(name, n, given):
                found.append({**row, "device": where, "torch": torch.__version__})
                print(json.dumps(row), flush=True)
                if given.out:
                    given.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    if given.smoke and (wrong := [row for row in found if row["ms"] is None]):
        raise SystemExit(f"{len(wrong)} peers disagree with ours")


if __name__ == "__main__":
    main()
