"""What our training loop costs on top of a bare, hand-written PyTorch loop of the same network and batch.

    python benchmarks/overhead.py [--save]

Two ratios, each interleaved in one process on one thread: the loop alone, and a whole run with evaluation after each
epoch, checkpoint, store and progress messages against the same bare loop, which does none of that. The two loops are
first checked to train the same network to the same parameters; otherwise no ratio is printed.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import timing
from peers.network import Plain
from tiebreak import catalog
from tiebreak.data.batches import epoch_batches
from tiebreak.drive import recorder
from tiebreak.drive.messages import Job, decode, encode
from tiebreak.drive.worker import train
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Run
from tiebreak.results.store import Store
from tiebreak.streams import stream
from tiebreak.study.schema import Study
from tiebreak.tasks.interface import Split
from tiebreak.train.loop import Loop
from tiebreak.train.step import initial_state

DESIGNS = {"pool": 2, "strided": 1}  # side of the pooling


def bare_epoch(network: nn.Module, optimiser: torch.optim.Optimizer, split: Split, order: torch.Tensor) -> float:
    network.train()
    total = 0.0
    for chosen in torch.split(order, 8):
        optimiser.zero_grad()
        loss = F.cross_entropy(network(split["images"][chosen]), split["labels"][chosen])
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        total += loss.item()
    return total


def check_equal(run: Run, split: Split, pool: int) -> None:
    """Train both for an epoch in float64 without dropout, from the same start in the same order."""
    still = run.model_copy(update={"hypers": {**run.hypers, "dropout": 0.0}})
    split = {"images": split["images"].double(), "labels": split["labels"]}
    network = design_network(still).double()
    bare = Plain(pool, nn.Dropout(0.0), 10).double()
    bare.load_state_dict(network.state_dict())
    loop = Loop(catalog.TASKS["classify"], network, still, initial_state(network, still))
    loop.train_epoch(split, lambda share, steps: None)
    order = torch.from_numpy(epoch_batches(run.seed, 0, len(split["labels"]), run.batch).indices).flatten()
    bare_epoch(bare, torch.optim.SGD(bare.parameters(), lr=run.setting["lr"]), split, order)
    for ours, peer in zip(network.parameters(), bare.parameters(), strict=True):
        distance = float((ours - peer).detach().norm() / peer.detach().norm())
        if distance > 1e-10:
            raise SystemExit(f"the two loops disagree by {distance:g}: no ratio is worth printing")


def design_network(run: Run) -> nn.Module:
    task = catalog.TASKS[run.task]
    return catalog.DESIGNS[run.design].network(
        task.shape(task.load(run.data, None)), run.build, stream(run.seed, "init")
    )


def loop_ratio(run: Run, split: Split, pool: int, rounds: int) -> dict[str, object]:
    task, network, bare = catalog.TASKS["classify"], design_network(run), Plain(pool, nn.Dropout(0.7), 10)
    state = initial_state(network, run)
    optimiser = torch.optim.SGD(bare.parameters(), lr=run.setting["lr"])
    count = len(split["labels"])

    def ours() -> None:
        Loop(task, network, run, state).train_epoch(split, lambda share, steps: None)

    def peer() -> None:
        bare_epoch(bare, optimiser, split, torch.from_numpy(np.random.default_rng(0).permutation(count)))

    return row("loop", run, timing.interleaved(ours, peer, rounds), count / run.batch)


def whole_ratio(run: Run, split: Split, pool: int, rounds: int) -> dict[str, object]:
    """A whole run as the worker does it and the driver stores it, against bare epochs."""
    bare, count = Plain(pool, nn.Dropout(0.7), 10), len(split["labels"])
    optimiser = torch.optim.SGD(bare.parameters(), lr=run.setting["lr"])

    def ours() -> None:
        with tempfile.TemporaryDirectory() as name:
            folder, store = Path(name), Store.create(Path(name))
            job = Job(runs=(run.model_dump(mode="json"),), folder=name, data_dir=None, device="cpu")
            for message in train(job, lambda progress: None):
                recorder.record(store, folder, decode(encode(message)))
            store.close()

    def peer() -> None:
        for epoch in range(run.epochs):
            bare_epoch(bare, optimiser, split, torch.from_numpy(np.random.default_rng(epoch).permutation(count)))

    return row("whole run", run, timing.interleaved(ours, peer, rounds), run.epochs * count / run.batch)


def row(case: str, run: Run, timed: tuple[float, float, float], steps: float) -> dict[str, object]:
    ours, peer, ratio = timed
    return {
        "benchmark": "overhead",
        "case": f"{case}, {run.design}, batch {run.batch}",
        "n": 1,
        "ours_ms": round(1000 * ours / steps, 4),
        "peer": "bare PyTorch loop",
        "peer_ms": round(1000 * peer / steps, 4),
        "ratio": round(ratio, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--save", action="store_true", help="keep the rows in benchmarks/results/overhead.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    plan = make_plan(Study.load("pooling").quickened().changed(seeds=1), None)
    task = catalog.TASKS["classify"]
    rows = []
    for arm, pool in DESIGNS.items():
        run = plan.runs[plan.arm(arm).run({"lr": 0.1}, 0)].model_copy(update={"evaluations": ({},)})
        split = task.split(task.load(run.data, None), "train", run.options, {})
        check_equal(run, split, pool)
        rows += [ratio(run, split, pool, arguments.rounds) for ratio in (loop_ratio, whole_ratio)]
    for item in rows:
        print(f"{item['case']}: ours {item['ours_ms']} ms/step, bare {item['peer_ms']} ms/step, ratio {item['ratio']}")
    if arguments.save:
        print(timing.save("overhead", rows))


if __name__ == "__main__":
    main()
