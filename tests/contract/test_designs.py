"""Checks that run over every design of the catalog: adding a design is testing it."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from support.families import build, every_design, example, family_of, floats, task_of
from tiebreak import catalog
from tiebreak.cost import measure
from tiebreak.layers.dropout import dropouts, step_keys
from tiebreak.models.design import Design
from tiebreak.models.fusibility import why_not
from tiebreak.models.input_sensitivity import ignores_input
from tiebreak.plan.resolve import complete
from tiebreak.study import registry
from tiebreak.tasks.interface import Split, select


def loss(design: Design, network: nn.Module, split: Split, weights: Tensor) -> Tensor:
    return task_of(design).loss(network, split, weights, {})


@every_design
@pytest.mark.parametrize("number", [0, 1, 2])
def test_builds_and_gives_one_row_per_example(design: Design, number: int) -> None:
    network, shape = build(design, number=number)
    for batch in (1, 5):
        split, _ = example(design, shape, batch)
        outcomes = task_of(design).outcomes(network.eval(), split)
        assert outcomes
        assert all(values.shape[0] == batch and torch.isfinite(values).all() for values in outcomes.values())


@every_design
def test_builds_with_the_options_that_names_gives_it_and_with_those_alone(design: Design) -> None:
    small, known = family_of(design).small, registry.DESIGNS[design.name].options
    network = design.network(small, complete(known, {}), 0)
    with torch.no_grad():
        assert network(*small.inputs(3)).shape == small.output(3)
    with pytest.raises(TypeError):
        design.network(small, {"nonsense": 1}, 0)


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
def test_every_parameter_gets_a_finite_gradient_that_is_not_zero(design: Design) -> None:
    network, shape = build(design)
    split, weights = example(design, shape, 32)
    loss(design, network.eval(), split, weights).backward()  # type: ignore[no-untyped-call]
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


@every_design
def test_the_loss_depends_on_the_input(design: Design) -> None:
    network, shape = build(design)
    network.eval()
    split, weights = example(design, shape, 8, seed=0)
    other, _ = example(design, shape, 8, seed=1)
    for name in family_of(design).inputs:
        with torch.no_grad():
            assert loss(design, network, split, weights) != loss(design, network, {**split, name: other[name]}, weights)


@every_design
def test_a_plan_would_find_that_it_uses_its_input(design: Design) -> None:
    assert not ignores_input(*build(design))


@every_design
def test_a_row_does_not_depend_on_the_others_of_its_batch(design: Design) -> None:
    network, shape = build(design)
    split, _ = example(design, shape, 6)
    split = floats(split, torch.float64)
    together = task_of(design).outcomes(network.eval().double(), split)
    for row in range(6):
        own = select(task_of(design), split, partial(torch.narrow, dim=0, start=row, length=1))
        single = task_of(design).outcomes(network, own)
        for name, values in single.items():
            torch.testing.assert_close(values[0], together[name][row], rtol=1e-10, atol=1e-12)


@every_design
def test_same_key_same_network_other_key_another(design: Design) -> None:
    first, second, third = (build(design, key)[0].state_dict() for key in (1, 1, 2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], third[name]) for name in first)


@every_design
def test_building_leaves_the_global_generator_alone(design: Design) -> None:
    before = torch.get_rng_state()
    build(design)
    assert torch.equal(before, torch.get_rng_state())


@every_design
def test_forward_draws_nothing_from_the_global_generator(design: Design) -> None:
    network, shape = build(design)
    split, weights = example(design, shape, 4)
    before = torch.get_rng_state()
    values = [loss(design, network.train(), split, weights) for _ in range(2)]
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(values[0], values[1])


@every_design
def test_dropout_follows_the_step_key_in_training_only(design: Design) -> None:
    network, shape = build(design)
    layers = dropouts(network)
    assert not [layer for layer in network.modules() if isinstance(layer, nn.Dropout)], "use tiebreak's Dropout"
    if not layers:
        pytest.skip("the design has no dropout")
    split, weights = example(design, shape, 16)
    keys = step_keys(7, 0, 2, len(layers))
    values = {}
    for mode in (True, False):
        network.train(mode)
        for step in (0, 1):
            for layer, key in zip(layers, keys[step], strict=True):
                layer.key.copy_(key)
            values[mode, step] = loss(design, network, split, weights)
    assert not torch.equal(values[True, 0], values[True, 1])
    assert torch.equal(values[False, 0], values[False, 1])


@every_design
def test_training_on_one_batch_lowers_its_loss(design: Design) -> None:
    network, shape = build(design)
    split, weights = example(design, shape, 8)
    network.eval()  # without dropout: this is about the gradient
    start = float(loss(design, network, split, weights).detach())
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(20):
        optimiser.zero_grad()
        loss(design, network, split, weights).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert float(loss(design, network, split, weights).detach()) < start


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
    assert why_not(network, shape) == ""


@every_design
def test_costs_are_counted(design: Design) -> None:
    network, shape = build(design)
    assert measure.parameters(network) == sum(value.numel() for value in network.state_dict().values())
    flops = measure.forward_flops(network, shape)
    assert flops is not None
    assert flops > 0
    assert network.training, "counting leaves the mode as it was"


@every_design
def test_the_source_hash_is_its_own(design: Design) -> None:
    assert design.source() == design.source()
    others = [other.source() for other in catalog.DESIGNS.values() if other is not design]
    assert design.source() not in others
