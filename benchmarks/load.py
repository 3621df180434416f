"""How long the commands that read results take with many runs, arms or comparisons. Nothing is trained.

    python benchmarks/load.py make DIR       write results folders and CSV files of made-up scores (2 minutes, 100 MB)
    python benchmarks/load.py measure DIR    run every command on them; user CPU seconds, the best of three

User CPU seconds, since the machine may do other work: with two idle cores the wall time of these commands is about the
same (they use one thread). `make` goes through the product's own planner and store, so a folder is what `run` leaves.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

EXAMPLES, EPOCHS, REPEATS = 100, 5, 3
LIMIT = 600  # seconds of wall time


def study(name: str, *, arms: int, settings: int, seeds: int, comparisons: int, design: str = "mlp") -> dict[str, Any]:
    """Arms of one design that differ in momentum, a grid of learning rates, the first pairs of arms compared."""
    names = [f"arm{number:03}" for number in range(arms)]
    pairs = list(itertools.islice(itertools.combinations(names, 2), comparisons))
    return {
        "name": name,
        "question": "How long do readers take?",
        "task": "classify",
        "data": "mnist5k",
        "metric": "accuracy",
        "margin": 0.005,
        "seeds": seeds,
        "budget": {"epochs": EPOCHS, "batch": 8},
        "grid": {"lr": [round(0.001 * (number + 1), 6) for number in range(settings)]},
        "arms": [
            {"name": arm, "design": design, "fixed": {"momentum": round(0.9 * number / arms, 6)}}
            for number, arm in enumerate(names)
        ],
        "comparisons": [{"a": a, "b": b, "primary": number == 0} for number, (a, b) in enumerate(pairs)],
    }


STUDIES: dict[str, dict[str, Any]] = {
    "runs": {"arms": 20, "settings": 50, "seeds": 10, "comparisons": 19},  # 10,000 runs
    "arms": {"arms": 100, "settings": 1, "seeds": 10, "comparisons": 99, "design": "cnn-pool"},
    "comparisons": {"arms": 46, "settings": 1, "seeds": 10, "comparisons": 1000},
}


def make(folder: Path) -> None:
    from tiebreak import api
    from tiebreak.results.store import Store
    from tiebreak.study.schema import Study

    for name, size in STUDIES.items():
        made = folder / name
        made.mkdir(parents=True)
        (folder / f"{name}.toml").write_text(tomli_w.dumps(study(name, **size)), "utf-8")
        plan = api.prepare(Study.load(str(folder / f"{name}.toml")), made, None)
        with closing(Store.create(made)) as store, store.transaction():
            for number, run in enumerate(plan.runs.values()):
                add_run(store, run, number)
    random = np.random.default_rng(1)
    write_scores(folder / "arms300.csv", [f"arm{number}" for number in range(300)], 10, random)
    write_scores(folder / "rows1000000.csv", ["one", "two"], 500_000, random)


def add_run(store: Any, run: Any, number: int) -> None:
    from tiebreak.results.record import EpochRecord, FinalRecord, RunRecord

    random, level = np.random.default_rng(number), 0.8 + run.hypers["momentum"] / 20 - abs(run.hypers["lr"] - 0.02)
    for epoch in range(1, EPOCHS + 1):
        accuracy = level - 0.1 / epoch + 0.01 * random.standard_normal()
        metrics = {"train_loss": 1 / epoch, "val_accuracy": accuracy, "val_loss": 1 - accuracy}
        seconds = {"train": 1.0, "evaluate": 0.1, "checkpoint": 0.01}
        store.add_epoch(EpochRecord(trajectory=run.trajectory, epoch=epoch, metrics=metrics, seconds=seconds))
    right = (random.random(EXAMPLES) < level).astype(np.float32)
    outcomes = {
        "accuracy": right,
        "loss": random.random(EXAMPLES).astype(np.float32),
        "prediction": random.integers(0, 10, EXAMPLES).astype(np.float32),
    }
    metrics = {"accuracy": float(right.mean()), "loss": float(outcomes["loss"].mean())}
    provenance = {"tiebreak": "load", "torch": "none", "device": "cpu", "strategy": "loop", "steps_per_second": "1"}
    store.add_run(
        RunRecord(identity=run.identity, trajectory=run.trajectory, status="done", epoch=EPOCHS, provenance=provenance)
    )
    store.add_final(
        FinalRecord(identity=run.identity, evaluation="default", metrics=metrics, outcomes=outcomes, seconds=0.1)
    )


def write_scores(path: Path, arms: Sequence[str], seeds: int, random: np.random.Generator) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("arm,seed,score\n")
        for number, arm in enumerate(arms):
            for seed, score in enumerate((0.001 * number + 0.01 * random.standard_normal(seeds)).tolist()):
                file.write(f"{arm},{seed},{score:.6f}\n")


def commands(folder: Path) -> Iterator[list[str]]:
    yield ["--help"]
    for name in ("runs", "comparisons", "arms"):
        for command in ("status", "verdict", "report"):
            yield [command, str(folder / name)]
    yield ["plan", str(folder / "arms.toml")]
    yield ["compare", str(folder / "arms300.csv"), "--json", "--all-pairs"]
    yield ["compare", str(folder / "arms300.csv"), "--json", "--baseline", "arm0"]
    yield ["compare", str(folder / "rows1000000.csv")]


def user_seconds(arguments: Sequence[str]) -> tuple[float, float, int]:
    """User CPU and wall seconds of a command with one thread, and its exit code; 124 where it was stopped."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
    command = [sys.executable, "-m", "tiebreak", *arguments]
    try:
        code = subprocess.run(
            command,
            check=False,
            timeout=LIMIT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ).returncode
    except subprocess.TimeoutExpired:
        code = 124
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, time.perf_counter() - start, code


def measure(folder: Path, repeats: int = REPEATS) -> None:
    print(f"{date.today()}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    for arguments in commands(folder):
        found = [user_seconds(arguments) for _ in range(repeats)]
        cpu, wall = (min(each[column] for each in found) for column in (0, 1))
        shown = " ".join(Path(each).name if "/" in each else each for each in arguments)
        print(json.dumps({"command": shown, "cpu": round(cpu, 2), "wall": round(wall, 2), "exit": found[0][2]}))


if __name__ == "__main__":
    {"make": make, "measure": measure}[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))
