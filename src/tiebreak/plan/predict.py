"""Predicted training time and memory of a plan, from a few timed steps of every design."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tiebreak.cost import formulas
from tiebreak.errors import explain_design_errors
from tiebreak.plan.runs import Plan, cohort_names, cohorts
from tiebreak.study import registry

UPDATE_FACTOR = 1.2  # the update and bookkeeping of a step, relative to its forward and backward pass
OPTIMISER_SLOTS = {"sgd-summed": 1, "adam": 2, "adamw": 2}  # tensors per parameter; plain SGD has one with momentum
PROCESS_BYTES = 350e6  # a process that has imported torch


@dataclass(frozen=True)
class PlannedCohort:
    """Runs that can be trained as one computation, and the bytes that one of them needs in training."""

    name: str
    runs: int
    parameters: int
    run_bytes: int
    cannot_fuse: str  # why they are trained one after the other; empty: they can be fused


@dataclass(frozen=True)
class Prediction:
    """Predicted training seconds by arm (a shared run counts for its first arm) and bytes of memory.

    `process_bytes` are those of one worker with the data and without any run. What fits is measured before training.
    """

    seconds: dict[str, float]
    cohorts: list[PlannedCohort]
    process_bytes: float


def predict(plan: Plan, data_dir: Path | None, workers: int) -> Prediction:
    """Time a few steps of every design on zeros. Rough: an error of a factor of two is normal."""
    import torch

    from tiebreak import catalog
    from tiebreak.cost import measure
    from tiebreak.models.design import SHAPES

    torch.set_num_threads(1)
    first = next(iter(plan.runs.values()))
    task = catalog.TASKS[first.task].with_options(first.options)
    data = task.load(first.data, data_dir)
    make_shape = SHAPES[registry.TASKS[first.task].family]
    seconds: dict[str, float] = {}
    counted: set[str] = set()
    timed: dict[str, float] = {}  # arms that share a network share its time
    for arm in plan.arms:
        run = plan.runs[next(iter(arm.runs.values()))]
        shape = make_shape(**arm.shape)
        key = repr((arm.design, run.build, shape))
        if key not in timed:
            with explain_design_errors(arm.design, plan.designs_from):
                network = catalog.find_design(arm.design, plan.designs_from).network(shape, run.build, 0)
                timed[key] = measure.step_seconds(network, shape, first.batch)
        steps = -(-task.sizes(data, run.options)["train"] // first.batch)
        own = set(arm.runs.values()) - counted
        counted |= own
        epochs = sum(plan.runs[identity].epochs for identity in own)
        seconds[arm.name] = UPDATE_FACTOR * timed[key] * steps * epochs / workers
    shape = make_shape(**plan.arms[0].shape)
    one, two = (sum(each.numel() for each in shape.inputs(batch)) for batch in (1, 2))
    tensors = 4 * (one + (two - one) * sum(plan.data.sizes.values()))  # a graph is shared by all examples
    return Prediction(seconds, _cohorts(plan), PROCESS_BYTES + 2 * tensors)


def _cohorts(plan: Plan) -> list[PlannedCohort]:
    from tiebreak import catalog
    from tiebreak.cost import measure
    from tiebreak.models.design import SHAPES

    arms = {identity: arm for arm in plan.arms for identity in arm.runs.values()}
    groups = cohorts(plan.runs.values())
    found = []
    for key, name in cohort_names(groups).items():
        run = groups[key][0]
        shape = SHAPES[registry.TASKS[run.task].family](**arms[run.identity].shape)
        with explain_design_errors(run.design, plan.designs_from):
            network = catalog.find_design(run.design, plan.designs_from).network(shape, run.build, 0)
            parameters = measure.parameters(network)
            activations = measure.activation_bytes(network, shape, run.batch)
        slots = OPTIMISER_SLOTS.get(run.optimiser.kind, int(any(each.hypers["momentum"] for each in groups[key])))
        found.append(
            PlannedCohort(
                name=name,
                runs=len(groups[key]),
                parameters=parameters,
                run_bytes=formulas.run_bytes(parameters, slots, activations),
                cannot_fuse=arms[run.identity].cannot_fuse,
            )
        )
    return found
