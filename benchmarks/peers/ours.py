"""Our fused trainer as a peer: the same problem, through the classes that `tiebreak run` uses."""

from __future__ import annotations

import torch

from peers.problem import Floats, Problem
from tiebreak import catalog
from tiebreak.models.design import Images
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.study.registry import HYPERS
from tiebreak.study.schema import Optimiser
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop
from tiebreak.train.step import State, initial_state

SHAPE = Images(channels=1, height=28, width=28, classes=10)
TASK = catalog.TASKS["classify"]
ENDLESS = 1_000_000  # epochs: the benchmark decides when to stop


def make_runs(problem: Problem, seed: int = 0) -> list[Run]:
    """The problem's runs; their seeds are those that `make_problem` took."""
    hypers = {name: hyper.default for name, hyper in HYPERS.items()}
    return [
        Run(
            design=problem.design,
            source="",
            build={},
            task="classify",
            options={},
            data="",
            checksum="",
            optimiser=Optimiser(kind="sgd"),
            hypers={**hypers, "lr": float(lr)},
            setting={"lr": float(lr)},
            seed=seed + number,
            epochs=ENDLESS,
            batch=problem.indices.shape[2],
            comparability=0,
            evaluations=({},),
        )
        for number, lr in enumerate(problem.lr)
    ]


class Ours:
    """All runs of a problem whose steps are exactly one epoch; `looped` trains the first of them by our loop."""

    def __init__(self, problem: Problem, device: str, *, looped: bool = False) -> None:
        self.problem, self.device = problem, device
        self.split = {
            "images": torch.from_numpy(problem.images).to(device),
            "labels": torch.from_numpy(problem.labels).to(device),
        }
        assert len(problem.labels) == problem.steps * problem.indices.shape[2]
        runs, self.states = make_runs(problem)[: 1 if looped else None], list[State]()
        for run in runs:
            network = catalog.DESIGNS[run.design].network(SHAPE, {}, stream(run.seed, "init")).to(device)
            self.states.append(initial_state(network, run))
        if looped:
            self.trainer: Fused | Loop = Loop(TASK, network, runs[0], self.states[0])
        else:
            self.trainer = Fused(TASK, network, runs, self.states)

    def run(self) -> None:
        """One epoch of every run."""
        self.trainer.train_epoch(self.split, lambda share, steps: None)

    def parameters(self) -> dict[str, Floats]:
        """Name -> [n, ...]."""
        names = self.states[0].params
        return {name: torch.stack([state.params[name] for state in self.states]).cpu().numpy() for name in names}
