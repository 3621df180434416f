"""The specification of training: one run, trained by a plain loop over its steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tiebreak.data.batches import epoch_batches
from tiebreak.errors import TiebreakError
from tiebreak.layers.batchnorm import weigh_rows
from tiebreak.layers.buffer_updates import OwnBuffers, updates_of, updating_layers
from tiebreak.layers.dropout import keyed, skip_zero_rates, step_keys
from tiebreak.layers.global_generators import drawn_from, generator_states
from tiebreak.plan.runs import Run
from tiebreak.streams import stream
from tiebreak.study.base import RunPrecision
from tiebreak.study.registry import Scalar
from tiebreak.tasks.interface import Split, Task, count, select
from tiebreak.train.augmentation import augmented
from tiebreak.train.evaluate import PLAIN, Evaluation, evaluate
from tiebreak.train.foreach_update import updates
from tiebreak.train.optim import per_step
from tiebreak.train.precision import MIXED, callable_in
from tiebreak.train.schedule import factors
from tiebreak.train.step import State, averaged, hyper_tensors, loss_and_gradient, start_pass

TICK_SECONDS = 0.5  # how often progress is reported

Tick = Callable[[float, int], None]  # called with the share of the epoch that is done, and the steps that it took


class Loop:
    """One run with its network: an engine for `trainer`. It changes the state in place."""

    def __init__(
        self, task: Task, network: nn.Module, run: Run, state: State, precision: RunPrecision | None = None
    ) -> None:
        self._task, self._network, self._run, self._state = task, network, run, state
        self._precision = precision or run.precision
        skip_zero_rates(network, state.rates)

    def train_epoch(self, split: Split, tick: Tick) -> list[float]:
        """Train the run's next epoch. Returns its mean training loss, over the losses before each update."""
        losses = self._train_pass(split, tick, learning=True)
        self._state.epoch += 1
        return [float(losses.mean())]

    def train_on(self, split: Split, *, learning: bool = True) -> list[npt.NDArray[np.float64]]:
        """One pass that does not advance the epoch counter. Returns the loss of every step, before its update."""
        return [self._train_pass(split, lambda share, steps: None, learning=learning).cpu().numpy()]

    def evaluate(self, split: Split, how: Mapping[str, Scalar] = PLAIN) -> list[Evaluation]:
        """Evaluate the run."""
        with averaged(self._state):
            return [evaluate(self._task, self._network, split, how, self._precision)]

    def finite(self) -> list[bool]:
        """Whether all parameters are finite."""
        return [all(bool(torch.isfinite(value).all()) for value in self._state.params.values())]

    def provenance(self) -> dict[str, str]:
        """The precision of products, where it is not plain float32 on a CPU."""
        if self._precision == "bfloat16":
            return {"precision": MIXED}
        if not any(values.is_cuda for values in self._state.params.values()):
            return {}
        return {"precision": "TF32" if torch.backends.cuda.matmul.allow_tf32 else "float32, TF32 off"}

    def setup_seconds(self) -> float:
        """A loop needs no preparation."""
        return 0.0

    def _train_pass(self, split: Split, tick: Tick, *, learning: bool) -> Tensor:
        """Train on every example of a split once, or with a learning rate of 0. Returns the losses of all steps."""
        task, network, run, state = self._task, self._network, self._run, self._state
        like = next(iter(state.params.values()))
        batches = epoch_batches(run.seed, state.epoch, count(task, split), run.batch, shuffled=not task.ordered)
        steps = len(batches.indices)
        indices, weights = torch.from_numpy(batches.indices).to(like.device), torch.from_numpy(batches.weights).to(like)
        layers = list(keyed(network).values())
        keys = step_keys(stream(run.seed, "dropout"), state.steps, steps, len(layers)).to(like.device)
        now = keys.new_zeros(len(layers))  # of the present step: the layers' keys are its elements
        for number, layer in enumerate(layers):
            layer.key = now[number]
        augment_keys = step_keys(stream(run.seed, "augment"), state.steps, steps, 1)[:, 0].to(like.device)
        hypers = hyper_tensors(run, like)
        course = learning * factors(run.optimiser.schedule, state.epoch, steps, run.epochs, state.reduction)
        kind = run.optimiser.kind
        update = updates(kind, state, hypers, per_step(kind, hypers, course, state.steps))

        network.train()
        start_pass(kind, network, state.buffers, state.slots)
        call = callable_in(network, self._precision)
        renewing, buffers = updating_layers(network), OwnBuffers(network, state.buffers)
        padded = (batches.weights == 0).any(axis=1)
        weigh_rows(network, None, native=True)
        generators = generator_states()
        params = [parameter for parameter in network.parameters() if parameter.requires_grad]
        losses = torch.zeros(steps, dtype=torch.float64, device=like.device)
        reported = time.monotonic()
        for step in range(steps):
            batch = select(task, split, partial(torch.index_select, dim=0, index=indices[step]))
            if run.augment is not None:
                batch = augmented(run.augment, batch, indices[step], weights[step], augment_keys[step])
            if layers:
                now.copy_(keys[step])
            for layer in layers:
                layer.calls = 0
            if padded[step]:
                weigh_rows(network, weights[step])
            loss, gradient = loss_and_gradient(task, call, params, batch, weights[step], hypers)
            update(step, gradient)
            buffers.keep()
            for name, values in updates_of(renewing).items() if renewing else ():
                state.buffers[name].copy_(values)
            losses[step] = loss
            if time.monotonic() - reported > TICK_SECONDS:
                reported = time.monotonic()
                tick((step + 1) / steps, step + 1)
        weigh_rows(network, None)
        if drawn := drawn_from(generators):
            raise TiebreakError(
                f"{run.design}: the forward pass draws random numbers from the generator of {drawn}, which no run could"
                " repeat, under a condition that no check before training met (a count of steps, the size of a batch);"
                " draw in every training pass, and choose by torch.where"
            )
        state.steps += steps
        return losses
