"""How many workers fit on the machines of a cluster. No Ray."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tiebreak.drive.jobs import CPU_COHORT
from tiebreak.plan.runs import Plan

PROCESS_BYTES = 350 << 20  # of a worker that has imported torch
COPIES = 5  # of the parameters of a run: themselves, gradients, two of the optimiser, one to spare


@dataclass(frozen=True)
class Demand:
    """What Ray reserves for one worker."""

    cpus: float
    gpus: float
    memory: int  # bytes; an estimate, so that machines with little memory get fewer workers

    def fits(self, resources: Mapping[str, float]) -> int:
        """How many workers a machine with these resources has room for."""
        rooms = [resources.get("CPU", 0.0) / self.cpus, resources.get("memory", 0.0) / self.memory]
        rooms += [resources.get("GPU", 0.0) / self.gpus] if self.gpus else []
        return math.floor(min(rooms) + 1e-6)


def demand(plan: Plan, device: str, workers: int | None, machines: list[Mapping[str, float]]) -> Demand:
    """What a worker of this plan needs. More workers than GPUs share them; no machine is too small for all."""
    gpus = sum(each.get("GPU", 0.0) for each in machines)
    share = 1.0 if workers is None or workers <= gpus or not gpus else 1 / math.ceil(workers / gpus)
    parameters = max((arm.parameters or 0 for arm in plan.arms), default=0)
    together = CPU_COHORT if device == "cpu" else 1  # on a GPU, they are in its own memory
    memory = PROCESS_BYTES + 4 * COPIES * parameters * together
    largest = max((int(each.get("memory", 0.0)) for each in machines), default=0)
    return Demand(cpus=1, gpus=share if device == "cuda" else 0.0, memory=max(1, min(memory, largest)))
