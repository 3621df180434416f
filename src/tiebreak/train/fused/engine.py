"""Many runs as one computation: `vmap` over the loss and update that `loop` uses, on stacked states.

The runs of a cohort differ in numbers only (seed, learning rate, ...). Their states are stacked, one tensor [n, ...]
for each of a run's tensors, and each run's own state becomes a view of the stack, so that checkpoints need not know of
it. A single run is padded to two: with a run axis of one the kernels round differently. `alone`, for one run, does
without the run axis instead: a traced program of torch's own kernels, which a GPU can replay.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import vmap

from tiebreak.errors import TiebreakError
from tiebreak.layers.batchnorm import batchnorms, expect_full_batches, weigh_rows
from tiebreak.layers.carry import carried
from tiebreak.layers.dropout import skip_zero_rates
from tiebreak.layers.gradient_hooks import hook_obstacle
from tiebreak.layers.mapped_norm import own_norms
from tiebreak.layers.product_conv import compile_kernels, has_products, use_products
from tiebreak.layers.rnn import Recurrent, use_plain_cells
from tiebreak.layers.stacked_conv import stack_convolutions
from tiebreak.plan.runs import Run, evaluation_key
from tiebreak.study.base import RunPrecision
from tiebreak.study.registry import Scalar
from tiebreak.tasks.interface import Split, Task, count, select
from tiebreak.train.evaluate import PLAIN, Evaluation, at_once, evaluate
from tiebreak.train.foreach_update import Traced, traced_update
from tiebreak.train.fused.program import Program, make_program
from tiebreak.train.fused.stack import Stack
from tiebreak.train.fused.step_inputs import StepInputs, epoch_inputs, mapped
from tiebreak.train.fused.trace import Function, OverRuns, make_outcomes, make_step
from tiebreak.train.fused.trace import alone as without_run_axis
from tiebreak.train.loop import TICK_SECONDS, Tick
from tiebreak.train.precision import MIXED
from tiebreak.train.step import State, averaged, hyper_tensors, start_pass

STEPS = 10  # in one replay of a CUDA graph; more gain little
COMPILED = 10_000  # steps from which on compiling should pay: an estimate
PRECISION = "float32, matrix products as three TF32 products"
ALONE = "float32, TF32 off"
REDUCED = "TF32"
EVALUATED = 200  # examples at a time, at most: independent of the cohort, so that a run's numbers are too


class Fused:
    """The runs of a cohort as one computation: an engine for `trainer`."""

    def __init__(
        self,
        task: Task,
        network: nn.Module,
        runs: Sequence[Run],
        states: Sequence[State],
        *,
        compiled: bool | None = None,
        precision: RunPrecision | None = None,
        alone: bool = False,
    ) -> None:
        if obstacle := hook_obstacle(network):
            raise TiebreakError(obstacle)
        first = next(iter(states[0].params.values()))
        self._device = first.device
        self._task, self._network = task, network
        self._real = len(runs)
        self._precision = precision or runs[0].precision
        self._alone = alone
        self._over_runs: OverRuns = without_run_axis if alone else vmap
        padding = 2 - len(runs) if len(runs) < 2 and not alone else 0
        self._runs = [*runs, *[runs[-1]] * padding]
        self._states = [*states, *[_copied(states[-1])] * padding]
        use_plain_cells(network, True)
        if self._device.type == "cuda" and not alone:
            use_products(network, runs[0].batch)
            stack_convolutions(network)  # the others
        self._stack = Stack(self._states)
        if alone:
            _share(network, states[0])
        # The state that an evaluation carries from one example to the next; training has its own.
        self._carried = {name: torch.zeros_like(self._stack.buffers[name]) for name in carried(network)}
        self._hypers = _stacked_hypers(self._runs, first)
        self._rates = _stacked_rates(self._states)
        skip_zero_rates(network, self._rates)
        self._total = torch.zeros(len(self._runs), dtype=torch.float64, device=self._device)
        # By the split's id and whether batch normalisation is torch's; the split is kept, so that the id stays its own.
        self._training: dict[tuple[int, bool], tuple[Split, Program]] = {}
        self._evaluating: dict[tuple[str, tuple[tuple[int, ...], ...]], Program] = {}
        self._compiled = compiled  # on a GPU; None: where it pays
        self._next: tuple[tuple[int, list[int]], StepInputs] | None = (
            None  # the next epoch's inputs, if computed already, for this many examples and steps done by each run
        )
        self._timed: StepInputs | None = None  # of `train_steps`
        self._setup = 0.0

    def restart(self, states: Sequence[State]) -> None:
        """Go on with other states of the same runs; what was traced and captured stays."""
        self._states = [*states, *[_copied(states[-1])] * (len(self._runs) - len(states))]
        self._stack.load(self._states)
        self._next = self._timed = None
        self._setup = 0.0

    @property
    def replays(self) -> bool:
        """Whether a training step of all runs is replayed on a GPU."""
        return self._device.type == "cuda" and not self._alone

    def train_steps(self, split: Split, steps: int) -> None:
        """Train on the first batches of the next epoch, for timing: no count changes, and every call takes the same."""
        if self._timed is None:
            inputs = self._epoch_inputs(count(self._task, split))
            self._timed = mapped(inputs, lambda values: values[:steps].to(self._device))
        self._network.train()
        program, done = self._training_program(split, self._timed, STEPS), 0
        start_pass(self._runs[0].optimiser.kind, self._network, self._stack.buffers, self._stack.slots)
        while done < steps:
            done += program.advance(self._timed, done, steps - done)
        self._wait()

    def train_epoch(self, split: Split, tick: Tick) -> list[float]:
        """Train the next epoch of every run. Returns their mean training losses, taken before each update."""
        before = self._states[0].steps
        totals = self._train_pass(split, tick, STEPS)
        for state in self._states:
            state.epoch += 1
        ahead = self._runs[0].optimiser.schedule.kind != "plateau"  # its rates depend on the evaluation to come
        if ahead and self._device.type == "cuda" and self._states[0].epoch < self._runs[0].epochs:
            examples = count(self._task, split)  # computed while the GPU still works
            self._next = (examples, self._steps_done()), self._epoch_inputs(examples)
        return (totals[-1] / (self._states[0].steps - before)).tolist()[: self._real]

    def train_on(self, split: Split, *, learning: bool = True) -> list[npt.NDArray[np.float64]]:
        """One pass that does not advance the epoch counter. Returns the loss of every step, before its update."""
        totals = torch.stack(self._train_pass(split, lambda share, steps: None, 1, learning=learning)).cpu().numpy()
        losses = np.diff(totals, axis=0, prepend=0.0)
        return [losses[:, row] for row in range(self._real)]

    def _train_pass(self, split: Split, tick: Tick, stride: int, *, learning: bool = True) -> list[Tensor]:
        """Train on every example once. The sums of losses [n] so far, on a GPU after every `stride` steps.

        Without `learning` all learning rates are 0.
        """
        examples = count(self._task, split)
        ready, self._next = self._next, None
        place = examples, self._steps_done()
        inputs = ready[1] if ready is not None and ready[0] == place else self._epoch_inputs(examples)
        if not learning:
            inputs = {**inputs, "changing": {**inputs["changing"], "lr": torch.zeros_like(inputs["changing"]["lr"])}}
        inputs = mapped(inputs, lambda values: values.to(self._device))
        self._network.train()
        parts = self._training_parts(split, inputs, stride)
        start_pass(self._runs[0].optimiser.kind, self._network, self._stack.buffers, self._stack.slots)
        self._total.zero_()
        steps, done, reported = len(inputs["indices"]), 0, time.monotonic()
        totals = []
        for program, own, end in parts:
            while done < end:
                done += program.advance(own, done, end - done)
                totals.append(self._total.clone())
                if time.monotonic() - reported > TICK_SECONDS:
                    self._wait()
                    reported = time.monotonic()
                    tick(done / steps, done)
        for state in self._states:
            state.steps += steps
        return totals

    def evaluate(self, split: Split, how: Mapping[str, Scalar] = PLAIN) -> list[Evaluation]:
        """Evaluate every run on a split, in parts of equal size; the last one overlaps the one before it.

        All splits that are large enough have parts of the same size, so that one program serves them. Examples that
        have an order are evaluated one at a time; the state that is carried between them starts at zero. A run alone is
        evaluated as the loop does it.
        """
        if self._alone:
            return [self._evaluate_alone(split, how)]
        self._network.eval()
        task = self._task.with_options(how)
        examples = count(task, split)
        size = self._part_size(task, split)
        parts = -(-examples // size)
        program = self._evaluating_program(how, select(task, split, lambda values: values[:size]))
        for values in self._carried.values():
            values.zero_()
        found: dict[str, list[Tensor]] = {}
        for part in range(parts):
            start = min(part * size, examples - size)
            outcomes = program.call(select(task, split, partial(torch.narrow, dim=0, start=start, length=size)))
            for name, values in outcomes.items():
                found.setdefault(name, []).append(values[:, part * size - start :].float().cpu())
        whole = {name: torch.cat(values, dim=1).numpy() for name, values in found.items()}
        each = [{name: values[row] for name, values in whole.items()} for row in range(self._real)]
        return [task.score(outcomes) for outcomes in each]

    def _evaluate_alone(self, split: Split, how: Mapping[str, Scalar]) -> Evaluation:
        use_plain_cells(self._network, False)
        with averaged(self._states[0]):
            found = evaluate(self._task, self._network, split, how, self._precision)
        use_plain_cells(self._network, True)
        return found

    def finite(self) -> list[bool]:
        """Whether all parameters of each run are finite."""
        flags = [torch.isfinite(values).view(len(values), -1).all(dim=1) for values in self._stack.params.values()]
        return torch.stack(flags).all(dim=0).tolist()[: self._real]

    def provenance(self) -> dict[str, str]:
        """The precision of products, where it is not plain float32 on a CPU."""
        mixed = self._precision == "bfloat16"
        layers = [layer for layer in self._network.modules() if isinstance(layer, Recurrent)]
        own = {"recurrent": "one kernel a sequence"} if any(layer.form() == "kernel" for layer in layers) else {}
        if self._device.type == "cpu":
            return {"precision": MIXED, **own} if mixed else own
        exact = ALONE if self._alone else PRECISION
        precision = MIXED if mixed else REDUCED if torch.backends.cuda.matmul.allow_tf32 else exact
        return {"precision": precision, "compiled": "yes" if self._compiled else "no", **own}

    def operations(self) -> int:
        """How many operations a training step has, once it is traced."""
        return max((program.operations for _, program in self._training.values()), default=0)

    def setup_seconds(self) -> float:
        """Seconds spent on tracing, compiling and capturing since the last call."""
        spent, self._setup = self._setup, 0.0
        return spent

    def _training_parts(self, split: Split, inputs: StepInputs, stride: int) -> list[tuple[Program, StepInputs, int]]:
        """The programs of a pass, each with its inputs and the step before which it ends.

        One, except for a run alone with batch normalisation, which torch's kernel computes where all rows count: as in
        the loop, only a last batch that is padded needs ours.
        """
        layers, steps = batchnorms(self._network), len(inputs["indices"])
        if not (self._alone and layers) or any(layer.momentum is None for layer in layers.values()):
            return [(self._training_program(split, inputs, stride), inputs, steps)]
        full = count(self._task, split) // self._runs[0].batch
        buffers = {name: values for name, values in inputs["buffers"].items() if not name.endswith("weights")}
        bare: StepInputs = {**inputs, "buffers": buffers}
        found = [(self._training_program(split, bare, min(stride, full), native=True), bare, full)] if full else []
        if full < steps:
            found.append((self._training_program(split, inputs, 1), inputs, steps))
        return found

    def _training_program(self, split: Split, inputs: StepInputs, stride: int, *, native: bool = False) -> Program:
        place = id(split), native
        if place not in self._training:
            start, first, steps = time.perf_counter(), self._runs[0], len(inputs["indices"])
            compiled = self._is_compiled(steps)
            kind, over_runs = first.optimiser.kind, self._over_runs
            step = make_step(
                *(self._task, self._network, kind, first.augment, self._precision),
                over_runs=over_runs,
                at_once=self._update_at_once(compiled=compiled),
            )
            row = mapped(inputs, lambda values: values[0])
            state = {**vars(self._stack), "total": self._total}
            own = {"hypers": self._hypers, "rates": self._rates}
            two = [mapped(each, lambda values: values[:2].clone()) for each in (state, own, row)]
            weigh_rows(self._network, None, native=native)
            expect_full_batches(self._network, count(self._task, split) % first.batch == 0)
            trial = partial(step, two[0], {**two[1], "split": split}, two[2])
            with own_norms(not compiled):
                meanwhile = None  # a call fills caches, and raises if the design cannot be fused
                if self._device.type == "cuda" and has_products(self._network):
                    meanwhile = compile_kernels(trial, partial(self.evaluate_two, split))
                else:
                    trial()
                program = make_program(
                    *(step, state, {**own, "split": split}, row),
                    steps=min(stride, steps),
                    compiled=compiled,
                    meanwhile=meanwhile,
                )
            weigh_rows(self._network, None)
            self._training[place] = split, program
            self._setup += time.perf_counter() - start
        return self._training[place][1]

    def _is_compiled(self, steps: int) -> bool:
        """Whether training is compiled; decided by the whole run, so that a resumed one decides the same.

        Not a run alone with batch normalisation: torch's own kernel is faster than what the compiler makes (a residual
        network on an H200: 1.51 ms against 1.76), and with that kernel torch 2.11 cannot compile.
        """
        if self._alone and batchnorms(self._network):
            self._compiled = False
        if self._compiled is None:
            self._compiled = steps * self._runs[0].epochs >= COMPILED
        return self._compiled

    def _update_at_once(self, *, compiled: bool) -> Traced | None:
        """The update of a run alone in float32: one kernel of torch's instead of several for each tensor."""
        if not self._alone or any(values.dtype != torch.float32 for values in self._stack.params.values()):
            return None
        hypers = hyper_tensors(self._runs[0], torch.zeros(()))
        fixed = {name: float(value) for name, value in hypers.items()}
        return traced_update(self._runs[0].optimiser.kind, fixed, compiled=compiled)

    def _evaluating_program(self, how: Mapping[str, Scalar], batch: Split) -> Program:
        shapes = evaluation_key(how), tuple(tuple(values.shape) for values in batch.values())
        if shapes not in self._evaluating:
            start = time.perf_counter()
            function, shared = self._outcomes(self._task.with_options(how))
            meanwhile = None
            if self._device.type == "cuda" and has_products(self._network):
                meanwhile = compile_kernels(partial(function, self._carried, shared, batch))
            self._evaluating[shapes] = make_program(
                function, self._carried, shared, batch, meanwhile=meanwhile, merge=True
            )
            self._setup += time.perf_counter() - start
        return self._evaluating[shapes]

    def _outcomes(self, task: Task) -> tuple[Function, dict[str, dict[str, Tensor]]]:
        """The function that evaluates a batch, and what its calls share."""
        function = make_outcomes(task, self._network, self._precision, over_runs=self._over_runs)
        return function, {"params": self._stack.averages or self._stack.params, "buffers": self._stack.buffers}

    def evaluate_two(self, split: Split) -> None:
        """Evaluate two runs on the first examples of a split, not traced: raises if that cannot be fused."""
        training = self._network.training
        self._network.eval()
        function, shared = self._outcomes(self._task)
        state, own = (mapped(each, lambda values: values[:2].clone()) for each in (self._carried, shared))
        size = self._part_size(self._task, split)
        function(state, own, select(self._task, split, lambda values: values[:size]))
        self._network.train(training)

    def _part_size(self, task: Task, split: Split) -> int:
        """How many examples are evaluated at once."""
        examples = count(task, split)
        return 1 if task.ordered else min(examples, at_once(task, split, EVALUATED))

    def _epoch_inputs(self, examples: int) -> StepInputs:
        dtype = next(iter(self._stack.params.values())).dtype
        shuffled = not self._task.ordered
        inputs = epoch_inputs(self._network, self._runs, self._states, examples, dtype, shuffled=shuffled)
        if not self._alone:
            return inputs
        first, steps = self._states[0].steps + 1, len(inputs["indices"])  # which step it is: for a fused update
        counts = torch.arange(first, first + steps, dtype=torch.float32)[:, None]
        return {**inputs, "changing": {**inputs["changing"], "count": counts}}

    def _steps_done(self) -> list[int]:
        return [state.steps for state in self._states]

    def _wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize()


def _share(network: nn.Module, state: State) -> None:
    """Make the network's own tensors those of the state."""
    for name, parameter in network.named_parameters():
        parameter.data = state.params[name] if name in state.params else state.buffers[name]
    for name, _ in list(network.named_buffers()):
        if name in state.buffers:
            owner, _, own = name.rpartition(".")
            network.get_submodule(owner)._buffers[own] = state.buffers[name]


def _copied(state: State) -> State:
    return replace(
        state,
        params=dict(state.params),
        buffers=dict(state.buffers),
        slots={name: dict(slots) for name, slots in state.slots.items()},
        averages=dict(state.averages),
    )


def _stacked_hypers(runs: Sequence[Run], like: Tensor) -> dict[str, Tensor]:
    """The hyper-parameters [n] that any run uses; those that change from step to step are among the step inputs."""
    each = [hyper_tensors(run, like) for run in runs]
    names = dict.fromkeys(name for hypers in each for name in hypers if name not in ("lr", "dropout", "ema"))
    return {name: torch.stack([hypers.get(name, like.new_zeros(())) for hypers in each]) for name in names}


def _stacked_rates(states: Sequence[State]) -> dict[str, Tensor]:
    """Dropout rates [n] by buffer: each run's own, or the design's."""
    return {name: torch.stack([state.rates[name] for state in states]) for name in states[0].rates}
