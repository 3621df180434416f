"""Times on a GPU, captured in CUDA graphs: rows go to a file as they come, until the seconds are spent."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch

HEADS = 16
Rows = list[dict[str, object]]
Work = Callable[[], object]


@dataclass
class Bench:
    """Where rows go, and how long there is."""

    out: Path
    smoke: bool
    end: float
    rows: Rows

    @property
    def device(self) -> str:
        """Where tensors live."""
        return "cpu" if self.smoke else "cuda"

    @property
    def heads(self) -> int:
        """The interpreter computes one program after the other."""
        return 1 if self.smoke else HEADS

    def add(self, **row: object) -> None:
        """Keep a row, print it, write all of them."""
        self.rows.append(row)
        print(json.dumps(row), flush=True)
        self.out.write_text(json.dumps(self.rows, indent=1) + "\n", "utf-8")

    def open(self, what: str) -> bool:
        """Whether there is time left; what is skipped is said."""
        if time.monotonic() < self.end:
            return True
        self.add(skipped=what)
        return False

    def milliseconds(self, work: Work) -> float:
        """The median of a call from Python."""
        if self.smoke:
            start = time.perf_counter()
            work()
            return 1000 * (time.perf_counter() - start)
        import triton

        return float(triton.testing.do_bench(work, warmup=10, rep=40, return_mode="median"))

    def captured(self, works: Sequence[Work], replays: int = 9) -> float:
        """Milliseconds of one of the calls, all in one CUDA graph: the median of the replays."""
        return self.interleaved({"": works}, replays)[""]

    def interleaved(self, sides: Mapping[str, Sequence[Work]], rounds: int = 15) -> dict[str, float]:
        """Milliseconds of one call of each side, captured, in turns: medians over the rounds."""
        if self.smoke:
            return {name: self.milliseconds(works[0]) for name, works in sides.items()}
        graphs = {name: graph_of(works) for name, works in sides.items()}
        spans: dict[str, list[float]] = {name: [] for name in graphs}
        for turn in range(rounds + 1):  # the first warms up
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(len(graphs) + 1)]  # type: ignore[no-untyped-call]
            for mark, graph in zip(marks, graphs.values(), strict=False):
                mark.record()
                graph.replay()
            marks[-1].record()
            torch.cuda.synchronize()
            for name, (start, end) in zip(graphs, pairwise(marks), strict=True) if turn else ():
                spans[name].append(start.elapsed_time(end) / len(sides[name]))
        return {name: float(statistics.median(each)) for name, each in spans.items()}


def graph_of(works: Sequence[Work]) -> torch.cuda.CUDAGraph:
    """The calls as one CUDA graph, after a call of each."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for work in works:
            work()
        works[0]()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for work in works:
            work()
    return graph
