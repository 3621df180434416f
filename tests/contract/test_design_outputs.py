"""Checks of what every design of the catalog computes; checks 1 to 12, of how it is built, are in test_designs.py.

13. Every parameter gets a gradient that is finite and not zero.
14. The loss depends on each of the inputs.
15. The probe that a plan uses finds that the network uses its input.
16. A row does not depend on the others of its batch.
17. Examples of weight 0, which fill up a batch, do not count.
18. Evaluation changes no parameter and no buffer, and says the same twice.
19. Dropout follows the step's key in training, and is off in evaluation.
20. float64 works, and float32 gives the same to its precision.
21. Training on one batch lowers its loss.
22. Symbol by symbol a network says what it says of all symbols at once.
23. No symbol depends on those after it.
24. More padding changes nothing.

22 and 23 are for families that predict the next symbol, 24 for families whose examples are padded.
"""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import nn

from support.families import build, designs, every_design, example, family_of, floats, loss, options_of, task_of
from tiebreak import catalog
from tiebreak.layers.dropout import dropouts, step_keys
from tiebreak.models.design import Design
from tiebreak.models.input_sensitivity import ignores_input
from tiebreak.tasks.interface import select

every_writer = designs(name for name, design in catalog.DESIGNS.items() if family_of(design).writes)
every_padded = designs(name for name, design in catalog.DESIGNS.items() if family_of(design).pad)


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
    split, _ = example(design, shape, 4)
    split = floats(split, torch.float64)
    together = task_of(design).outcomes(network.eval().double(), split)
    for row in range(4):
        own = select(task_of(design), split, partial(torch.narrow, dim=0, start=row, length=1))
        single = task_of(design).outcomes(network, own)
        for name, values in single.items():
            torch.testing.assert_close(values[0], together[name][row], rtol=1e-10, atol=1e-12)


@every_design
def test_examples_of_weight_zero_do_not_count(design: Design) -> None:
    network, shape = build(design)
    split = floats(example(design, shape, 6)[0], torch.float64)
    real = select(task_of(design), split, partial(torch.narrow, dim=0, start=0, length=4))
    weights = torch.tensor([0.25] * 4 + [0.0] * 2, dtype=torch.float64)
    with torch.no_grad():
        filled = loss(design, network.eval().double(), split, weights)
        torch.testing.assert_close(filled, loss(design, network, real, weights[:4]), rtol=1e-10, atol=1e-12)


@every_design
def test_evaluation_changes_nothing_and_says_the_same_twice(design: Design) -> None:
    network, shape = build(design)
    split, _ = example(design, shape, 3)
    tensors = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    before = {name: values.detach().clone() for name, values in tensors.items()}
    with torch.no_grad():
        first, second = (task_of(design).outcomes(network.eval(), split) for _ in range(2))
    assert all(torch.equal(values, second[name]) for name, values in first.items())
    assert all(torch.equal(values, before[name]) for name, values in tensors.items())


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
def test_float64_works_and_float32_is_near(design: Design) -> None:
    network, shape = build(design)
    split, weights = example(design, shape, 3)
    with torch.no_grad():
        single = loss(design, network.eval(), split, weights)
        double = loss(design, network.double(), floats(split, torch.float64), weights.double())
    assert (single.dtype, double.dtype) == (torch.float32, torch.float64)
    assert float(single) == pytest.approx(float(double), rel=1e-4)


@every_design
def test_training_on_one_batch_lowers_its_loss(design: Design) -> None:
    shape = family_of(design).small
    network = design.network(shape, options_of(design), 1).eval()  # without dropout: this is about the gradient
    split, weights = example(design, shape, 8)
    start = float(loss(design, network, split, weights).detach())
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(10):
        optimiser.zero_grad()
        loss(design, network, split, weights).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert float(loss(design, network, split, weights).detach()) < start


@every_writer
def test_symbol_by_symbol_is_all_symbols_at_once(design: Design) -> None:
    network, shape = build(design)
    network.eval().double()
    split = floats(example(design, shape, 3)[0], torch.float64)
    writes = family_of(design).writes
    assert writes is not None
    symbols = writes.symbols(split)
    with torch.no_grad():
        whole, state = writes.logits(network, split, symbols), writes.start(network, split)
        for place in range(symbols.shape[1]):
            logits, state = network.step(symbols[:, place], state)  # type: ignore[operator]
            torch.testing.assert_close(logits, whole[:, place], rtol=1e-9, atol=1e-11)


@every_writer
def test_no_symbol_depends_on_those_after_it(design: Design) -> None:
    network, shape = build(design)
    network.eval().double()
    split = floats(example(design, shape, 3)[0], torch.float64)
    writes = family_of(design).writes
    assert writes is not None
    symbols = writes.symbols(split)
    place = symbols.shape[1] // 2
    changed = symbols.clone()
    changed[:, place:] = torch.where(symbols[:, place:] == 4, 5, 4)
    with torch.no_grad():
        one, two = (writes.logits(network, split, each) for each in (symbols, changed))
    torch.testing.assert_close(one[:, :place], two[:, :place], rtol=1e-12, atol=1e-13)
    assert not torch.allclose(one[:, place:], two[:, place:])


@every_padded
def test_more_padding_changes_nothing(design: Design) -> None:
    network, shape = build(design)
    split, weights = example(design, shape, 4)
    split, pad = floats(split, torch.float64), family_of(design).pad
    assert pad is not None
    with torch.no_grad():
        values = [loss(design, network.eval().double(), each, weights.double()) for each in (split, pad(split))]
    torch.testing.assert_close(values[0], values[1], rtol=1e-10, atol=1e-12)
