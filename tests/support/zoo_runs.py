"""Runs of the networks of the zoo, and examples to train them on."""

from __future__ import annotations

import torch
from torch import Tensor

from support import zoo_attention, zoo_functions, zoo_layers, zoo_memory, zoo_random, zoo_recurrent, zoo_structure
from support.twins import Begun, make_run
from support.zoo import SHAPE, ZOO, Animal
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.train.step import initial_state

EXAMPLES, BATCH, RATE = 32, 8, 0.05  # four steps an epoch
NETWORKS = (
    zoo_attention,
    zoo_functions,
    zoo_layers,
    zoo_memory,
    zoo_random,
    zoo_recurrent,
    zoo_structure,
)  # importing them fills the zoo
TRAINED = [name for name, animal in ZOO.items() if not animal.refused]
FUSED = [name for name in TRAINED if ZOO[name].fusible]


def examples() -> dict[str, Tensor]:
    """A split."""
    generator = torch.Generator().manual_seed(3)
    images = torch.rand(EXAMPLES, 1, 6, 6, generator=generator, dtype=torch.float64) * 3 - 0.5
    return {"images": images, "labels": torch.randint(3, (EXAMPLES,), generator=generator)}


def runs_of(animal: Animal, count: int) -> list[Run]:
    """Runs with plain SGD."""
    return [make_run(animal.design(), seed=seed, lr=RATE, batch=BATCH) for seed in range(count)]


def begin(animal: Animal, runs: list[Run], dtype: torch.dtype | None = torch.float64, device: str = "cpu") -> Begun:
    """Their networks and states."""
    design = animal.design()
    networks = [design.network(SHAPE, {}, stream(run.seed, "init")).to(device, dtype) for run in runs]
    return Begun(design, runs, networks, [initial_state(*each) for each in zip(networks, runs, strict=True)])
