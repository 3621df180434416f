"""Timing of the benchmarks (both sides in one process, interleaved, medians), and saving of their results."""

from __future__ import annotations

import datetime
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

RESULTS = Path(__file__).parent / "results"


def interleaved(ours: Callable[[], object], peer: Callable[[], object], rounds: int) -> tuple[float, float, float]:
    """Median seconds of each side and the median of the ratios ours/peer of neighbouring rounds."""
    times: list[tuple[float, float]] = []
    for round_number in range(rounds + 1):
        pair = []
        for work in (ours, peer) if round_number % 2 else (peer, ours):
            start = time.perf_counter()
            work()
            pair.append(time.perf_counter() - start)
        times.append((pair[0], pair[1]) if round_number % 2 else (pair[1], pair[0]))
    kept = times[1:]  # the first round warms up
    return (
        statistics.median(pair[0] for pair in kept),
        statistics.median(pair[1] for pair in kept),
        statistics.median(pair[0] / pair[1] for pair in kept),
    )


def save(name: str, rows: list[dict[str, object]], *, device: str = "", versions: dict[str, str] | None = None) -> Path:
    """Keep rows with date, device, versions and the command."""
    where = {
        "device": device or f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} thread",
        "versions": {"python": platform.python_version(), "torch": torch.__version__, **(versions or {})},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": " ".join(["python", *sys.argv]),
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps([{**row, **where} for row in rows], indent=1) + "\n", "utf-8")
    return path
