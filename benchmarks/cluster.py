"""A Ray cluster of several nodes on this machine: what it costs, what a second node brings, what a dead node costs.

    python benchmarks/cluster.py [--rounds 3] [--runs 8] [--epochs 3] [--save]     about five minutes on two quiet cores

Nodes have one core each and do not see the driver's files: checkpoints travel through the object store. In each round
one study is trained three times, in turns: by one local worker process, on one node, on two nodes; medians of the
ratios within a round are shown. After `--minutes` no further round is begun. Clocks start when Ray runs and the plan
is made; starting the workers counts. Then one of two nodes is killed in the middle of its run, and a third goes on.
`--save` writes benchmarks/results/cluster.md.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.ray_cluster import hidden_files
from tiebreak import api
from tiebreak.cluster.node_worker import SEND_SECONDS
from tiebreak.cluster.ray_connection import connected
from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import ClusterState, EpochDone, Message, Note, Progress
from tiebreak.drive.runner import open_driver
from tiebreak.plan.runs import Plan
from tiebreak.results.packing import fingerprint
from tiebreak.results.store import Store
from tiebreak.study.schema import Study

RESULTS = Path(__file__).parent / "results" / "cluster.md"
PLACES, STEADY = ("local", "one node", "two nodes"), ", steady"
DEAD_SECONDS = 30.0  # allowed besides the interval of checkpoints, when a node dies


@dataclass
class Timed:
    """One training: seconds with and without the start of the workers, and when each epoch of a run was reported."""

    seconds: float = 0.0
    steady: float = 0.0
    epochs: dict[str, list[tuple[float, int]]] = field(default_factory=dict)  # trajectory -> (when, epoch)
    notes: list[str] = field(default_factory=list)


def study(name: str, *, runs: int, epochs: int) -> Study:
    content = {
        "name": name,
        "question": "What does a cluster cost?",
        "task": "classify",
        "data": "mnist5k",
        "metric": "accuracy",
        "margin": 0.01,
        "seeds": runs // 2,
        "budget": {"epochs": epochs, "batch": 8},
        "fixed": {"lr": 0.05},
        "arms": [{"name": each, "design": f"cnn-{each}"} for each in ("pool", "strided")],
        "comparisons": [{"a": "pool", "b": "strided"}],
    }
    return Study.model_validate(content)


def prepare(asked: Study, folder: Path) -> Plan:
    folder.mkdir()
    return api.prepare(asked, folder, None)


def train(plan: Plan, folder: Path, machine: Machine, listen: Callable[[Message], None] | None = None) -> Timed:
    """Train a plan into a folder that holds nothing else."""
    found, first = Timed(), 0.0

    def hear(message: Message) -> None:
        nonlocal first
        if isinstance(message, Progress | EpochDone) and not first:
            first = time.perf_counter()
        if isinstance(message, EpochDone):
            for record in message.records:
                found.epochs.setdefault(record.trajectory, []).append((time.perf_counter(), record.epoch))
        if isinstance(message, Note):
            found.notes.append(message.text)
        if listen is not None:
            listen(message)

    start = time.perf_counter()
    with open_driver(plan, folder, machine, hear) as driver:
        driver.train()
        end = time.perf_counter()
    found.seconds, found.steady = end - start, end - first
    return found


def results(folder: Path) -> dict[str, Any]:
    """What must not depend on where a run was trained."""
    with closing(Store.open(folder)) as store:
        records = store.records()
    return {
        "epochs": {key: {at: dict(each.metrics) for at, each in some.items()} for key, some in records.epochs.items()},
        "runs": {key: (run.status, run.epoch) for key, run in records.runs.items()},
        "finals": {
            (key, name): (dict(each.metrics), fingerprint(each.outcomes))
            for key, some in records.finals.items()
            for name, each in some.items()
        },
    }


@contextmanager
def cluster() -> Iterator[Any]:
    """A cluster whose head has no core, and our connection to it."""
    # 15 by default: beside other work, workers would be slower than local ones
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - Ray spells it so
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    os.environ["RAY_ADDRESS"] = found.address
    try:
        found.add_node(num_cpus=1)
        with hidden_files(), connected("ray", "cpu"):
            yield found
    finally:
        found.shutdown()


def scaling(found: Any, base: Path, given: argparse.Namespace) -> list[dict[str, float]]:
    """Rounds of: local, one node, two nodes."""
    asked, rounds, began = study("cluster", runs=given.runs, epochs=given.epochs), list[dict[str, float]](), time.time()
    local, ray = Machine(workers=1, strategy="loop"), Machine(on="ray", strategy="loop")
    expected = None
    while len(rounds) < given.rounds and (not rounds or time.time() - began < 60 * given.minutes):
        row = dict[str, float]()
        for name, machine in zip(PLACES, (local, ray, ray), strict=True):
            folder = base / f"{name}-{len(rounds)}"
            plan = prepare(asked, folder)
            node = found.add_node(num_cpus=1) if name == "two nodes" else None
            timed = train(plan, folder, machine)
            if node is not None:
                found.remove_node(node)
            expected = expected or results(folder)
            assert results(folder) == expected, f"{name}: other records"
            row |= {name: timed.seconds, name + STEADY: timed.steady}
            print(f"round {len(rounds) + 1}: {name}: {timed.seconds:.1f} s, {timed.steady:.1f} s steady", flush=True)
        rounds.append(row)
    return rounds


def dead_node(found: Any, base: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Two runs on two nodes; one node is killed once both have sent a checkpoint, a third takes its run over."""
    asked, killed = study("dead-node", runs=2, epochs=given.kill_epochs), list[float]()
    nodes, saved = [found.add_node(num_cpus=1) for _ in range(2)], set[str]()

    states = list[ClusterState]()

    def listen(message: Message) -> None:
        if isinstance(message, ClusterState):
            states.append(message)
        if isinstance(message, EpochDone):
            saved.update(state.trajectory for state in message.checkpoints)
            if len(saved) == 2 and not killed:
                killed.append(time.perf_counter())
                found.remove_node(busy_node(nodes, states[-1]), allow_graceful=False)

    plan = prepare(asked, base / "killed")
    timed = train(plan, base / "killed", Machine(on="ray", workers=2, strategy="loop"), listen)
    assert killed, "no node was killed: give more --kill-epochs"
    plan = prepare(asked, base / "whole")
    train(plan, base / "whole", Machine(workers=2, strategy="loop"))
    kill, gaps, lost = killed[0], list[float](), list[float]()
    for events in timed.epochs.values():
        gaps += [b - a for (a, _), (b, _) in itertools.pairwise(events) if not a <= kill < b]
    for events in timed.epochs.values():
        reached = max((epoch for when, epoch in events if when <= kill), default=0)
        last = max((when for when, _ in events if when <= kill), default=kill)
        further = min((when for when, epoch in events if epoch > reached), default=last)
        lost.append(further - last - (statistics.median(gaps) if gaps else 0.0))
    again = [text for text in timed.notes if "lost" in text or "again" in text]
    return {"lost": max(lost), "equal": results(base / "killed") == results(base / "whole"), "notes": again}


def busy_node(nodes: list[Any], state: ClusterState) -> Any:
    """One of these nodes that runs a job."""
    busy = [machine.name for machine in state.machines if machine.jobs]
    return next(node for node in nodes if any(node.node_id[:6] in name for name in busy))


def page(rounds: list[dict[str, float]], dead: dict[str, Any], command: str) -> str:
    import ray

    versions = f"Python {platform.python_version()}, torch {torch.__version__}, Ray {ray.__version__}"
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())

    def ratio(of: Callable[[dict[str, float]], float]) -> str:
        return f"{statistics.median(map(of, rounds)):.3f}"

    def cost(row: dict[str, float], kind: str = "") -> float:
        return row[f"one node{kind}"] / row[f"local{kind}"]

    def efficiency(row: dict[str, float], kind: str = "") -> float:
        return row[f"one node{kind}"] / (2 * row[f"two nodes{kind}"])

    allowed = f"{SEND_SECONDS:.0f} s between checkpoints + {DEAD_SECONDS:.0f} s"
    rows = [
        ("`--on ray` against local processes, one worker (asked: ≤ 1.10)", ratio(cost)),
        ("the same without the start of the workers", ratio(lambda row: cost(row, STEADY))),
        ("efficiency of two nodes of one core against one (asked: ≥ 0.9)", ratio(efficiency)),
        ("the same without the start of the workers", ratio(lambda row: efficiency(row, STEADY))),
        (f"a node killed: time lost (asked: ≤ {allowed})", f"{dead['lost']:.1f} s"),
        ("a node killed: records equal to those of local processes", "yes" if dead["equal"] else "NO"),
    ]
    seconds = [" | ".join(f"{row[name]:.1f}; {row[name + STEADY]:.1f}" for name in PLACES) for row in rounds]
    lines = [
        "# A cluster of several nodes on one machine",
        "",
        f"{date.today()}, {os.cpu_count()} CPU cores (load averages {load}), {versions}. `{command}`.",
        "",
        "| what | measured |",
        "|---|---|",
        *(f"| {what} | {value} |" for what, value in rows),
        "",
        f"Seconds of the {len(rounds)} rounds (with the start of the workers; without it):",
        "",
        "| local | one node | two nodes |",
        "|---|---|---|",
        *(f"| {each} |" for each in seconds),
        "",
        "All records of all rounds were equal.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=3.0, help="no further round is begun after so many")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--kill-epochs", type=int, default=35, help="of the two runs, one of which loses its node")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="tiebreak-cluster-"))
    try:
        with cluster() as found:
            rounds = scaling(found, base, given)
            dead = dead_node(found, base, given)
            text = page(rounds, dead, " ".join(["python", *sys.argv]))
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print("\n".join(dead["notes"]))
    print(text)
    if given.save:
        RESULTS.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
