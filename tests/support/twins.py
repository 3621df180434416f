"""The same runs twice: each trained by the loop, which is the specification, and all of them fused."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from support import REPOSITORY
from support.families import family_of, floats, options_of, task_of
from tiebreak import catalog
from tiebreak.models.design import Design
from tiebreak.plan.planner import make_plan
from tiebreak.plan.resolve import complete
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.study import registry
from tiebreak.study.schema import Optimiser, Study
from tiebreak.tasks.interface import Split
from tiebreak.train.fused.engine import Fused
from tiebreak.train.loop import Loop
from tiebreak.train.step import State, initial_state

DOCS = REPOSITORY / "docs"

NORMED = """
import torch.nn.functional as F
from torch import nn

class Normed(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.conv = nn.Conv2d(shape.channels, 6, 3, stride=2, bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(6, shape.classes)

    def forward(self, images):
        x = F.relu(self.norm(self.conv(images)))
        return self.out(self.dropout(x.mean(dim=(2, 3))))

DESIGNS = {"normed": Normed}
"""

OWN = ("small-residual", "normed")  # the example of docs/add-a-design.md, and one with batch normalisation
EVERY = [*catalog.DESIGNS, *OWN]

EXAMPLES, STEPS = 20, 3  # three steps of eight, the last of them padded
# What traces a design several times is run for these; for the others, some of which trace for ten seconds, it is slow.
QUICK = ("cnn-pool", "normed", "rnn-sigmoid", "gcn")
RULES: dict[str, dict[str, Any]] = {
    "sgd": {"kind": "sgd", "lr": 0.05},
    "momentum": {"kind": "sgd", "lr": 0.05, "momentum": 0.9, "weight_decay": 0.01},
    "summed": {"kind": "sgd-summed", "lr": 0.005, "weight_decay": 0.01},
    "adam": {"kind": "adam", "lr": 0.003, "weight_decay": 0.01},
    "adamw": {"kind": "adamw", "lr": 0.003, "weight_decay": 0.05},
}


def designs_file(name: str, folder: Path) -> Path | None:
    """The file of a user's design, written into the folder; None for a design of the catalog."""
    if name not in OWN:
        return None
    page = (DOCS / "add-a-design.md").read_text("utf-8")
    example = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)[0]
    path = folder / f"{name.replace('-', '_')}.py"
    path.write_text(example if name == "small-residual" else NORMED, "utf-8")
    return path


def find(name: str, folder: Path) -> Design:
    """A design by name, as a job finds it."""
    path = designs_file(name, folder)
    return catalog.find_design(name, None if path is None else str(path))


def make_run(design: Design, *, seed: int = 0, **more: Any) -> Run:
    """A run of the design; `more` are hyper-parameters, or replace what else is there."""
    hypers = {name: more.pop(name, hyper.default) for name, hyper in registry.HYPERS.items()}
    kind, schedule = more.pop("kind", "sgd"), more.pop("schedule", "constant")
    return Run.model_validate(
        {
            "design": design.name,
            "source": design.name,
            "build": options_of(design),
            "task": family_of(design).task,
            "options": complete(registry.TASKS[family_of(design).task].options, {}),
            "data": "none",
            "checksum": "none",
            "optimiser": Optimiser.model_validate({"kind": kind, "schedule": {"kind": schedule}}).model_dump(),
            "hypers": hypers,
            "setting": {},
            "seed": seed,
            "epochs": 5,
            "batch": 8,
            "comparability": 1,
            "evaluations": ({},),
            **more,
        }
    )


@dataclass(frozen=True)
class Begun:
    """Runs in their initial state, each with a network of its own."""

    design: Design
    runs: Sequence[Run]
    networks: list[nn.Module]
    states: list[State]

    def looped(self) -> list[Loop]:
        """Every run by itself."""
        each = zip(self.networks, self.runs, self.states, strict=True)
        return [Loop(task_of(self.design), network, run, state) for network, run, state in each]

    def fused(self) -> Fused:
        """All runs as one."""
        return Fused(task_of(self.design), self.networks[0], self.runs, self.states)


def begin(design: Design, runs: Sequence[Run], dtype: torch.dtype = torch.float64) -> Begun:
    """The runs as `run_group.make_group` makes them, on the family's small shape."""
    shape = family_of(design).small
    networks = [design.network(shape, run.build, stream(run.seed, "init")).to(dtype) for run in runs]
    return Begun(design, runs, networks, [initial_state(*each) for each in zip(networks, runs, strict=True)])


def silent(share: float, steps: int) -> None:
    """Tell nobody."""


def train(begun: Begun, split: Split, epochs: int, *, fused: bool) -> list[list[float]]:
    """Train all runs for some epochs. The losses [epochs][runs]."""
    trainers = [begun.fused()] if fused else begun.looped()
    return [[loss for each in trainers for loss in each.train_epoch(split, silent)] for _ in range(epochs)]


def tensors(state: State) -> dict[str, Tensor]:
    """All tensors of a state by name."""
    slots = {f"{name} {slot}": values for name, its in state.slots.items() for slot, values in its.items()}
    return {**state.params, **state.buffers, **slots}


def apart(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> float:
    """How far the tensors are from the others at most, norm by norm: |a - b| / |b|, for b = 0 |a|."""
    assert one.keys() == other.keys()
    found = [0.0]
    for name, values in one.items():
        wanted = other[name].double()
        size = float(torch.linalg.vector_norm(wanted)) or 1.0
        found.append(float(torch.linalg.vector_norm(values.double() - wanted)) / size)
    return max(found)


def equal(one: State, other: State) -> bool:
    """Whether two states are equal bit for bit (NaN included)."""
    mine, theirs = tensors(one), tensors(other)
    return mine.keys() == theirs.keys() and all(
        torch.equal(values.contiguous().view(torch.uint8), theirs[name].contiguous().view(torch.uint8))
        if values.ndim
        else torch.equal(values, theirs[name])
        for name, values in mine.items()
    )


def copy_state(source: State, target: State) -> None:
    """Give a state the values of another, where they lie."""
    theirs = tensors(source)
    for name, values in tensors(target).items():
        values.copy_(theirs[name])
    target.epoch, target.steps = source.epoch, source.steps


def planned(name: str, folder: Path, data_dir: Path, **more: Any) -> tuple[list[Run], str | None]:
    """Runs of a design on its family's data set, as a plan makes them, and the user's designs file if it has one."""
    path = designs_file(name, folder)
    study = Study.model_validate(
        {
            "name": "twins",
            "question": "Are they the same?",
            "task": family_of(find(name, folder)).task,
            "data": family_of(find(name, folder)).data,
            "metric": family_of(find(name, folder)).metric,
            "margin": 0.01,
            "seeds": 3,
            "options": dict(family_of(find(name, folder)).options),
            "budget": {"epochs": 3, "batch": family_of(find(name, folder)).batch},
            "optimiser": {"kind": "adam"},
            "fixed": {"lr": 0.003},
            "arms": [
                {"name": each, "design": name, "build": options_of(find(name, folder))} for each in ("one", "two")
            ],
            "comparisons": [{"a": "one", "b": "two"}],
            **({} if path is None else {"designs_from": str(path)}),
            **more,
        }
    )
    return list(make_plan(study, data_dir).runs.values()), None if path is None else str(path)


def grid(design: Design, rule: str, **more: Any) -> list[Run]:
    """One cohort: runs that differ in every number that a run has, and some that do without it."""
    base = {**RULES[rule], **more}
    each: list[dict[str, Any]] = [
        {},
        {"lr": base["lr"] / 3, "dropout": 0.0, "weight_decay": 0.0},
        {"lr": base["lr"] / 2, "dropout": 0.4, "momentum": 0.0, "beta1": 0.0},
        {"dropout": 0.1, "weight_decay": 0.03, "label_smoothing": 0.1, "eps": 1e-6},
        {"lr": 0.0},
    ]
    return [make_run(design, seed=seed // 2, **{**base, **own}) for seed, own in enumerate(each)]


def split_of(design: Design, count: int, dtype: torch.dtype, seed: int = 0) -> dict[str, Tensor]:
    """Examples of the family's small shape."""
    family = family_of(design)
    return floats(family.examples(family.small, count, seed), dtype)


def designs_with_slow_ones(quick: Collection[str] = QUICK) -> list[Any]:
    """Every design as a parameter; those that are not quick are marked slow."""
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in EVERY]
