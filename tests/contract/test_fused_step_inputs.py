"""What fused training starts from and what each step brings is, bit for bit, what the loop uses: for every design."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import vmap

from support.families import task_of
from support.twins import EVERY, EXAMPLES, STEPS, begin, equal, grid, silent, split_of
from tiebreak.data.batches import epoch_batches
from tiebreak.layers.dropout import drop, dropouts, keyed, restart_calls, step_keys
from tiebreak.models.design import Design
from tiebreak.streams import stream
from tiebreak.tasks.interface import Hypers, Split
from tiebreak.train.fused.stack import Stack
from tiebreak.train.fused.step_inputs import epoch_inputs, join
from tiebreak.train.fused.trace import gather
from tiebreak.train.loop import Loop
from tiebreak.train.optim import per_step
from tiebreak.train.schedule import factors
from tiebreak.train.step import hyper_tensors

pytestmark = pytest.mark.usefixtures("one_thread")
every_design = pytest.mark.parametrize("name", EVERY)


@every_design
def test_the_stack_holds_every_runs_initial_state_bit_for_bit(design: Design) -> None:
    runs = grid(design, "adam")
    looped, fused = begin(design, runs, torch.float32), begin(design, runs, torch.float32)
    stack = Stack(fused.states)
    for row, state in enumerate(looped.states):
        for kind in ("params", "buffers"):
            for name, values in getattr(state, kind).items():
                assert torch.equal(getattr(stack, kind)[name][row], values)
                mine = getattr(fused.states[row], kind)[name]  # the state's own is a view of the stack
                assert mine.data_ptr() == getattr(stack, kind)[name][row].data_ptr()
        assert all(not slot.any() for slots in stack.slots.values() for slot in slots.values())
        assert equal(fused.states[row], state)


class Recording:
    """A task that writes down what the loop gives it."""

    def __init__(self, design: Design) -> None:
        self._task = task_of(design)
        self.seen: list[tuple[Split, Tensor, dict[str, Tensor], list[Tensor]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    def loss(self, network: Any, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
        keys = [layer.key.clone() for layer in keyed(network).values()]
        self.seen.append((dict(batch), weights.clone(), {k: v.clone() for k, v in hypers.items()}, keys))
        return self._task.loss(network, batch, weights, hypers)


@every_design
def test_batches_weights_keys_and_learning_rates_are_those_that_the_loop_uses(design: Design) -> None:
    runs = grid(design, "adam", schedule="cosine")[1:4]
    split = split_of(design, EXAMPLES, torch.float32)
    begun = begin(design, runs, torch.float32)
    network = begun.networks[0]
    names = list(keyed(network))
    for epoch in range(2):
        shuffled = not task_of(design).ordered
        for layer in keyed(network).values():
            vars(layer).pop("idle", None)  # the loop below, of a run whose rate is 0, lets the layer make no masks
        inputs = epoch_inputs(network, runs, begun.states, EXAMPLES, torch.float32, shuffled=shuffled)
        for row, run in enumerate(runs):
            batches = epoch_batches(run.seed, epoch, EXAMPLES, run.batch, shuffled=shuffled)
            keys = step_keys(stream(run.seed, "dropout"), epoch * STEPS, STEPS, len(names))
            assert torch.equal(inputs["indices"][:, row], torch.from_numpy(batches.indices))
            for number, name in enumerate(names):
                assert torch.equal(inputs["buffers"][join(name, "key")][:, row], keys[:, number])
            course = factors(run.optimiser.schedule, epoch, STEPS, run.epochs, begun.states[row].reduction)
            own_hypers = hyper_tensors(run, next(iter(begun.states[row].params.values())))
            for name, values in per_step(run.optimiser.kind, own_hypers, course, epoch * STEPS).items():
                assert torch.equal(inputs["changing"][name][:, row], values)  # what the loop's updates use
            task: Any = Recording(design)
            Loop(task, begun.networks[row], run, begun.states[row]).train_epoch(split, silent)
            assert len(task.seen) == STEPS
            for step, (batch, weights, hypers, used) in enumerate(task.seen):
                assert torch.equal(inputs["weights"][step, row], weights)
                for name, values in split.items():
                    own = values if name in task.shared else gather(values, inputs["indices"][step])[row]
                    assert torch.equal(own, batch[name])
                for number, name in enumerate(names):
                    assert torch.equal(inputs["buffers"][join(name, "key")][step, row], used[number])
                assert all(torch.equal(own_hypers[name], value) for name, value in hypers.items())


@every_design
def test_dropout_masks_are_those_of_the_loop_bit_for_bit(design: Design) -> None:
    runs = grid(design, "sgd")
    begun = begin(design, runs, torch.float32)
    inputs = epoch_inputs(begun.networks[0], runs, begun.states, EXAMPLES, torch.float32)
    x = torch.ones(8, 40)
    for name, layer in begun.networks[0].named_modules():
        if layer not in dropouts(begun.networks[0]):
            continue
        rates = torch.stack([state.rates[join(name, "rate")] for state in begun.states])
        for step in range(STEPS):
            keys = inputs["buffers"][join(name, "key")][step]
            fused = vmap(drop, in_dims=(None, 0, 0))(x, rates, keys)
            for row, network in enumerate(begun.networks):
                own = network.get_submodule(name)
                assert isinstance(own.key, Tensor)
                own.key.copy_(keys[row])
                restart_calls(own)
                assert torch.equal(own.train()(x), fused[row])
