"""How many messages a second the driver stores: the real driver, pool, store and progress display; workers are fake.

    python benchmarks/driver_load.py DIR [--runs 10000] [--nodes 100] [--mix study] [--profile FILE]

A fake worker is a process that reads jobs and answers each at once with the messages of a run that nobody trained. So
the driver is never idle: the messages per second are its ceiling. Checkpoint files are made (empty), so that the
driver has files to delete. Mixes, in messages of one run:

| mix       | Progress | EpochDone with a checkpoint | RunEnded |                                                    |
|-----------|----------|-----------------------------|----------|----------------------------------------------------|
| study     | 17       | 3                           | 1        | what `pooling --quick` sent, in a loop (2026-11-16) |
| no-ticks  |          | 3                           | 1        | epochs of less than half a second                   |
| epochs    |          | 100                         | 1        | the worst: nearly every message writes four rows    |
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

MIXES = {"study": (17, 3), "no-ticks": (0, 3), "epochs": (0, 100)}  # Progress and EpochDone of a run
EXAMPLES = 1000  # of the test split


def work(folder: Path) -> None:
    """A fake worker. It imports nothing of Tiebreak, so that a hundred of them start at once."""
    templates = json.loads((folder / "templates.json").read_text("utf-8"))
    names = json.loads((folder / "names.json").read_text("utf-8"))
    checkpoints = folder / "out" / "checkpoints"
    for line in sys.stdin:
        for run in json.loads(line)["runs"]:
            identity, trajectory = names[run_name(run)]
            for number, template in enumerate(templates["messages"]):
                if template == "epoch":
                    epoch = str(templates["epochs"][number])
                    (checkpoints / f"{identity}-{epoch}.safetensors").touch()
                    text = templates["epoch"].replace("EPOCH", epoch).replace("TRAJECTORY", trajectory)
                else:
                    text = templates[template].replace("TRAJECTORY", trajectory)
                sys.stdout.write(text.replace("IDENTITY", identity) + "\n")
        sys.stdout.write("\n")
        sys.stdout.flush()


def run_name(run: dict[str, object]) -> str:
    """What a fake worker finds a run's identity by."""
    return f"{run['design']} {json.dumps(run['hypers'], sort_keys=True)} {run['seed']}"


def prepare(folder: Path, runs: int, mix: str) -> object:
    """A plan of so many runs, and the messages of one run as texts with gaps for its names."""
    import tomli_w

    from load import study
    from tiebreak import api
    from tiebreak.study.schema import Study

    seeds = 10
    content = study("driver-load", arms=10, settings=-(-runs // (10 * seeds)), seeds=seeds, comparisons=9)
    ticks, epochs = MIXES[mix]
    content["budget"]["epochs"] = epochs
    (folder / "out" / "checkpoints").mkdir(parents=True)
    (folder / "study.toml").write_text(tomli_w.dumps(content), "utf-8")
    plan = api.prepare(Study.load(str(folder / "study.toml")), folder / "out", None)
    names = {run_name(run.model_dump(mode="json")): (key, run.trajectory) for key, run in plan.runs.items()}
    assert len(names) == len(plan.runs)
    (folder / "names.json").write_text(json.dumps(names), "utf-8")
    (folder / "templates.json").write_text(json.dumps(templates(ticks, epochs)), "utf-8")
    return plan


def templates(ticks: int, epochs: int) -> dict[str, object]:
    """Each kind of message as a text, and the order in which a run sends them."""
    import numpy as np

    from tiebreak.drive.messages import EpochDone, Progress, RunEnded, encode
    from tiebreak.results.record import CheckpointRecord, EpochRecord, FinalRecord, RunRecord

    random, who = np.random.default_rng(0), {"identity": "IDENTITY", "trajectory": "TRAJECTORY"}
    metrics = {"train_loss": 0.123456789012345, "val_accuracy": 0.912345678901234, "val_loss": 0.312345678901234}
    seconds = {"train": 1.23456789, "evaluate": 0.123456789, "checkpoint": 0.0123456789}
    outcomes = {
        "accuracy": (random.random(EXAMPLES) < 0.9).astype(np.float32),
        "loss": random.random(EXAMPLES).astype(np.float32),
        "prediction": random.integers(0, 10, EXAMPLES).astype(np.float32),
    }
    provenance = dict.fromkeys(("device", "strategy", "runs", "ms_per_step", "torch", "host", "cpu"), "0" * 24)
    epoch = EpochDone(
        records=(EpochRecord(trajectory="TRAJECTORY", epoch=-1, metrics=metrics, seconds=seconds),),
        checkpoints=(CheckpointRecord(**who, epoch=-1, file="IDENTITY-EPOCH.safetensors", sha256="0" * 64),),
    )
    ended = RunEnded(
        record=RunRecord(**who, status="done", epoch=epochs, provenance=provenance),
        finals=(
            FinalRecord(identity="IDENTITY", evaluation="default", metrics=metrics, outcomes=outcomes, seconds=0.1),
        ),
    )
    order = [each for _ in range(epochs) for each in ("progress",) * round(ticks / epochs) + ("epoch",)]
    numbers, number = [], 0
    for each in order:
        number += each == "epoch"
        numbers.append(number)
    return {
        "progress": encode(Progress(identities=("IDENTITY",), epochs=1.23456789, rate=123.456789)),
        "epoch": encode(epoch).replace('"epoch": -1', '"epoch": EPOCH'),
        "ended": encode(ended),
        "messages": [*order, "ended"],
        "epochs": [*numbers, 0],
    }


def measure(folder: Path, runs: int, nodes: int, mix: str, profile: str) -> None:
    from tiebreak.cli.progress import ProgressListener
    from tiebreak.drive import local_workers
    from tiebreak.drive.machine import Machine
    from tiebreak.drive.runner import open_driver
    from tiebreak.report.terminal.safe_console import SafeConsole

    plan = prepare(folder, runs, mix)
    fake = [sys.executable, "-I", str(Path(__file__).resolve()), "--work", str(folder.resolve())]
    local_workers.python = lambda module: fake  # type: ignore[attr-defined]
    before = memory()
    counts: dict[str, int] = {}
    clock = {"first": 0.0, "last": 0.0}
    with ProgressListener(SafeConsole()) as progress:

        def listen(message: object) -> None:
            kind = type(message).__name__
            counts[kind] = counts.get(kind, 0) + 1
            if kind == "EpochDone" and not clock["first"]:
                clock["first"] = time.perf_counter()
            if kind == "RunEnded":
                clock["last"] = time.perf_counter()
            progress.on_message(message)  # type: ignore[arg-type]

        with open_driver(plan, folder / "out", Machine(workers=nodes, strategy="loop"), listen) as driver:  # type: ignore[arg-type]
            cpu = time.process_time()
            trained = profiled(driver.train, profile) if profile else driver.train()
            cpu = time.process_time() - cpu
    total = sum(counts[kind] for kind in ("Progress", "EpochDone", "RunEnded") if kind in counts)
    wall = clock["last"] - clock["first"]
    store = sum(path.stat().st_size for path in (folder / "out").glob("records.sqlite*"))
    print(
        json.dumps(
            {
                "mix": mix,
                "runs": trained,
                "nodes": nodes,
                "messages": counts,
                "seconds": round(wall, 1),
                "messages_per_second": round(total / wall),
                "driver_cpu_seconds": round(cpu, 1),
                "messages_per_cpu_second": round(total / cpu),
                "store_mb": round(store / 1e6, 1),
                "driver_mb_before": before,
                "driver_mb_most": memory(),
                "load": os.getloadavg()[0],
            }
        )
    )


def profiled(call: Callable[[], int], path: str) -> int:
    import cProfile

    recorder = cProfile.Profile()
    found = recorder.runcall(call)
    recorder.dump_stats(path)
    return found


def memory() -> int:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder that does not exist yet, or is empty")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--mix", choices=MIXES, default="study")
    parser.add_argument("--profile", default="")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        work(given.folder)
    else:
        measure(given.folder, given.runs, given.nodes, given.mix, given.profile)


if __name__ == "__main__":
    main()
