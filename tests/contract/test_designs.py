"""Checks of every design of the catalog as it is built: adding a design is testing it.

 1. Builds for three shapes of its family, odd sizes among them; logits have the family's shape.
 2. Outcomes are finite, with one row for each example.
 3. Builds with the options of the registry, and refuses unknown ones.
 4. Builds with every option at its limits.
 5. Its task computes the metrics that the registry promises.
 6. The same key gives the same network, another key another one.
 7. Building leaves the global generators of torch, numpy and Python alone.
 8. So do forward and backward passes, in training mode too.
 9. Deep copies and networks with a loaded state_dict give the same loss.
10. Its runs can be fused.
11. Its parameters and operations are counted, and the counts are what the plan shows.
12. Its source has a hash of its own.

Checks 13 to 24, of what a network computes, are in test_design_outputs.py.
"""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest
import torch

from support.families import build, every_design, example, family_of, loss, task_of
from tiebreak.cost import measure
from tiebreak.errors import TiebreakError
from tiebreak.layers.dropout import restart_calls
from tiebreak.models.design import Design
from tiebreak.models.fusibility import fusion_obstacle
from tiebreak.plan.resolve import complete
from tiebreak.study import registry
from tiebreak.study.registry import Option, Scalar


@every_design
@pytest.mark.parametrize("number", [0, 1, 2])
def test_logits_have_the_familys_shape_and_outcomes_one_row_per_example(design: Design, number: int) -> None:
    network, shape = build(design, number=number)
    with torch.no_grad():
        for batch in (1, 5):
            assert network.eval()(*shape.inputs(batch)).shape == shape.output(batch)
            outcomes = task_of(design).outcomes(network, example(design, shape, batch)[0])
            assert outcomes
            assert all(values.shape[0] == batch and torch.isfinite(values).all() for values in outcomes.values())


@every_design
def test_builds_with_the_registrys_options_and_refuses_others(design: Design) -> None:
    small, known = family_of(design).small, registry.DESIGNS[design.name].options
    network = design.network(small, complete(known, {}), 0)
    with torch.no_grad():
        assert network(*small.inputs(3)).shape == small.output(3)
    with pytest.raises(TypeError):
        design.network(small, {"nonsense": 1}, 0)


def limits(option: Option) -> list[Scalar]:
    """The first and last choice, the least and the greatest value, or both of a switch."""
    if option.choices:
        return [option.choices[0], option.choices[-1]]
    if isinstance(option.default, bool):
        return [False, True]
    return [type(option.default)(bound) for bound in (option.low, option.high) if bound is not None]


@every_design
def test_builds_with_every_option_at_its_limits(design: Design) -> None:
    """Or says which sizes do not fit together. Built without values: the greatest networks fit no memory."""
    known, tried = registry.DESIGNS[design.name].options, 0
    refused: list[tuple[Scalar, str]] = []
    for name, option in known.items():
        for value in limits(option):
            with torch.device("meta"):
                try:
                    network = design.network(family_of(design).small, complete(known, {name: value}), 0)
                except TiebreakError as error:
                    refused.append((value, str(error)))
                    continue
            tried += 1
            assert measure.parameters(network) > 0
    assert tried >= len(known)
    assert all(str(value) in reason for value, reason in refused)


@every_design
def test_its_task_computes_the_metrics_that_names_promises(design: Design) -> None:
    network, shape = build(design)
    split, _ = example(design, shape, 4)
    with torch.no_grad():
        outcomes = task_of(design).outcomes(network.eval(), split)
    metrics, kept = task_of(design).score({name: values.numpy() for name, values in outcomes.items()})
    assert metrics.keys() == registry.TASKS[family_of(design).task].metrics.keys()
    assert family_of(design).metric in kept, "the study's metric of each example tells which examples to show"
    assert all(len(values) == 4 for values in kept.values())


@every_design
def test_same_key_same_network_other_key_another(design: Design) -> None:
    first, second, third = (build(design, key)[0].state_dict() for key in (1, 1, 2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], third[name]) for name in first)


def global_states() -> list[object]:
    """The states of the generators that libraries share."""
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    assert isinstance(state, dict)
    return [torch.get_rng_state().tolist(), state["state"]["key"].tolist(), random.getstate()]


@every_design
def test_building_leaves_the_global_generators_alone(design: Design) -> None:
    before = global_states()
    build(design)
    assert global_states() == before


@every_design
def test_forward_and_backward_draw_nothing_from_the_global_generators(design: Design) -> None:
    network, shape = build(design)
    split, weights = example(design, shape, 4)
    before = global_states()
    values = []
    for _ in range(2):
        restart_calls(network)
        values.append(loss(design, network.train(), split, weights))
    values[0].backward()  # type: ignore[no-untyped-call]
    assert global_states() == before
    assert torch.equal(values[0], values[1])


@every_design
def test_can_be_copied_saved_and_loaded(design: Design) -> None:
    network, shape = build(design)
    split, weights = example(design, shape, 4)
    other, _ = build(design, key=2)
    other.load_state_dict(network.state_dict())
    copied = copy.deepcopy(network)
    values = [loss(design, each.eval(), split, weights) for each in (network, other, copied)]
    assert torch.equal(values[0], values[1])
    assert torch.equal(values[0], values[2])


@every_design
def test_its_runs_can_be_fused(design: Design) -> None:
    network, shape = build(design, number=1)
    assert fusion_obstacle(lambda: network, shape) == ""


@every_design
def test_costs_are_counted(design: Design) -> None:
    network, shape = build(design)
    assert measure.parameters(network) == sum(value.numel() for value in network.state_dict().values())
    flops = measure.forward_flops(network, shape)
    assert flops is not None
    assert flops > 0
    assert network.training, "counting leaves the mode as it was"
