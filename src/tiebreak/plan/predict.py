"""Predicted memory of a plan; the time is predicted by `drive.forecast`, which times real steps."""

from __future__ import annotations

from dataclasses import dataclass

from tiebreak.cost import formulas
from tiebreak.errors import explain_design_errors
from tiebreak.plan.runs import Plan, cohort_names, cohorts
from tiebreak.study import registry

OPTIMISER_SLOTS = {"sgd-summed": 1, "adam": 2, "adamw": 2, "nadam": 2, "rmsprop": 2, "adagrad": 1, "lion": 1}
# tensors per parameter; the other rules have one with momentum
PROCESS_BYTES = 350e6  # a process that has imported torch


@dataclass(frozen=True)
class PlannedCohort:
    """Runs that can be trained as one computation, and the bytes that one of them needs in training."""

    key: str
    name: str
    runs: int
    parameters: int
    run_bytes: int
    cannot_fuse: str  # why they are trained one after the other; empty: they can be fused
    run_by_run: str  # operations that fused runs do one after the other, with their layers
    convolutions: bool  # whether the network has such layers


@dataclass(frozen=True)
class Prediction:
    """Predicted bytes of memory. `process_bytes` are those of one worker with the data and without any run.

    What fits is measured before training.
    """

    cohorts: list[PlannedCohort]
    process_bytes: float


def predict(plan: Plan) -> Prediction:
    """The memory of a run of every cohort, from the tensors that a training step keeps."""
    from tiebreak.models.design import shape_of

    first = next(iter(plan.runs.values()))
    shape = shape_of(registry.family_of(first.task), plan.arms[0].shape)
    one, two = (sum(each.numel() for each in shape.inputs(batch)) for batch in (1, 2))
    tensors = 4 * (one + (two - one) * sum(plan.data.sizes.values()))  # a graph is shared by all examples
    trained = 2 if any(run.precision == "float64" for run in plan.runs.values()) else 1  # beside them as they were read
    return Prediction(_cohorts(plan), PROCESS_BYTES + (1 + trained) * tensors)


def _cohorts(plan: Plan) -> list[PlannedCohort]:
    from torch.nn.modules.conv import _ConvNd

    from tiebreak import catalog
    from tiebreak.cost import measure
    from tiebreak.models.design import shape_of

    arms = {identity: arm for arm in plan.arms for identity in arm.runs.values()}
    groups = cohorts(plan.runs.values())
    found = []
    for key, name in cohort_names(groups).items():
        run = groups[key][0]
        shape = shape_of(registry.family_of(run.task), arms[run.identity].shape)
        with explain_design_errors(run.design, plan.designs_from):
            network = catalog.find_design(run.design, plan.designs_from).network(shape, run.build, 0)
            network = network.double() if run.precision == "float64" else network
            parameters = measure.parameters(network)
            activations = measure.activation_bytes(network, shape, run.batch)
        slots = OPTIMISER_SLOTS.get(run.optimiser.kind, int(any(each.hypers["momentum"] for each in groups[key])))
        slots += any(each.hypers.get("ema") for each in groups[key])
        slots += run.monitor is not None and run.monitor.patience is not None
        found.append(
            PlannedCohort(
                key=key,
                name=name,
                runs=len(groups[key]),
                parameters=parameters,
                run_bytes=formulas.run_bytes(parameters, slots, activations, size=measure.number_bytes(network)),
                cannot_fuse=arms[run.identity].cannot_fuse,
                run_by_run=arms[run.identity].run_by_run,
                convolutions=any(isinstance(each, _ConvNd) for each in network.modules()),
            )
        )
    return found
