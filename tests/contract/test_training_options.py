"""Every way to train gives the same numbers in a loop, fused, and resumed from a checkpoint in the other strategy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from support.families import task_of
from support.twins import apart, begin, find, make_run, silent, split_of
from tiebreak import catalog
from tiebreak.plan.runs import Run
from tiebreak.study.optimiser import KIND_DEFAULTS, Optimiser
from tiebreak.train import checkpoint
from tiebreak.train.loop import Loop

DESIGN = catalog.DESIGNS["cnn-strided"]
EXAMPLES = 20  # three steps of eight, the last of them padded

pytestmark = pytest.mark.usefixtures("one_thread")

CASES: dict[str, list[dict[str, Any]]] = {  # the runs of a cohort: they differ in numbers only
    "nesterov": [{"kind": "sgd-nesterov", "lr": 0.05, "momentum": momentum} for momentum in (0.9, 0.5)],
    "nadam": [{"kind": "nadam", "lr": 0.003, "beta1": beta} for beta in (0.9, 0.8)],
    "rmsprop": [{"kind": "rmsprop", "lr": 0.003, "momentum": momentum} for momentum in (0.0, 0.5)],
    "adagrad": [{"kind": "adagrad", "lr": rate} for rate in (0.01, 0.03)],
    "lion": [{"kind": "lion", "lr": 0.001, "weight_decay": decay} for decay in (0.0, 0.1)],
    "averaged weights": [{"kind": "sgd", "lr": 0.05, "ema": decay} for decay in (0.0, 0.5, 0.9)],
    "averaged weights of adam": [{"kind": "adam", "lr": 0.01, "ema": decay} for decay in (0.9, 0.5)],
    "step": [{"kind": "sgd", "lr": rate, "schedule": {"kind": "step", "step_epochs": 1}} for rate in (0.1, 0.05)],
    "one-cycle": [{"kind": "sgd", "lr": rate, "schedule": {"kind": "one-cycle"}} for rate in (0.1, 0.05)],
    "shift and flip": [{"kind": "sgd", "lr": rate, "augment": {"shift": 2, "flip": True}} for rate in (0.1, 0.05)],
    "crop and cutout": [{"kind": "sgd", "lr": rate, "augment": {"crop": 0.6, "cutout": 3}} for rate in (0.1, 0.05)],
    "mixup": [
        {"kind": "sgd", "lr": 0.05, "label_smoothing": smoothing, "augment": {"mixup": 0.4}} for smoothing in (0.1, 0.0)
    ],
    "clipping": [{"kind": "sgd", "lr": 0.05, "clip_norm": limit} for limit in (0.0, 0.05, 1e9)],
}


def run_of(seed: int, options: Mapping[str, Any]) -> Run:
    given = {**KIND_DEFAULTS.get(options["kind"], {}), **options}
    optimiser = Optimiser.model_validate({"kind": given.pop("kind"), "schedule": given.pop("schedule", {})})
    return make_run(DESIGN, seed=seed, optimiser=optimiser.model_dump(), **given)


@pytest.mark.parametrize("case", CASES)
def test_loop_fused_and_resumed_agree(case: str, tmp_path: Path) -> None:
    runs = [run_of(seed, options) for seed, options in enumerate(CASES[case])]
    split = split_of(DESIGN, EXAMPLES, torch.float64)
    looped, fused, resumed = (begin(DESIGN, runs) for _ in range(3))
    loops, engine = looped.looped(), fused.fused()
    wanted = [loop.train_epoch(split, silent)[0] for loop in loops]
    assert engine.train_epoch(split, silent) == pytest.approx(wanted, rel=1e-10)
    for run, state, other in zip(runs, fused.states, resumed.states, strict=True):
        checkpoint.restore(tmp_path, checkpoint.save(tmp_path, run, state), other)
    again = resumed.looped()
    wanted = [loop.train_epoch(split, silent)[0] for loop in loops]
    assert engine.train_epoch(split, silent) == pytest.approx(wanted, rel=1e-10)
    assert [loop.train_epoch(split, silent)[0] for loop in again] == pytest.approx(wanted, rel=1e-10)
    for one, two, three in zip(looped.states, fused.states, resumed.states, strict=True):
        assert apart(two.tensors(), one.tensors()) <= 1e-10
        assert apart(three.tensors(), one.tensors()) <= 1e-10
    scores = [loop.evaluate(split)[0][0] for loop in loops]
    assert [metrics for metrics, _ in engine.evaluate(split)] == [pytest.approx(each, rel=1e-6) for each in scores]


def test_runs_of_bfloat16_agree_up_to_its_rounding() -> None:
    runs = [make_run(DESIGN, seed=seed, kind="sgd", lr=0.05, precision="bfloat16") for seed in range(2)]
    split = split_of(DESIGN, EXAMPLES, torch.float32)
    looped, fused, plain = (begin(DESIGN, runs, torch.float32) for _ in range(3))
    exact = Loop(task_of(DESIGN), plain.networks[0], runs[0].model_copy(update={"precision": None}), plain.states[0])
    wanted = [loop.train_epoch(split, silent)[0] for loop in looped.looped()]
    assert fused.fused().train_epoch(split, silent) == pytest.approx(wanted, rel=1e-3)
    assert wanted[0] == pytest.approx(exact.train_epoch(split, silent)[0], rel=1e-2)
    assert apart(looped.states[0].params, plain.states[0].params) > 1e-7
    assert all(values.dtype == torch.float32 for values in fused.states[0].params.values())


@pytest.mark.parametrize("name", ["normed", "translator-taylor", "speech-lstm", "gcn", "rnn-tanh"])
def test_every_family_trains_in_bfloat16(name: str, tmp_path: Path) -> None:
    design = find(name, tmp_path)
    runs = [make_run(design, seed=seed, kind="sgd", lr=0.05, precision="bfloat16") for seed in range(2)]
    looped, fused, plain = (begin(design, runs, torch.float32) for _ in range(3))
    split = split_of(design, EXAMPLES, torch.float32)
    loops, engine = looped.looped(), fused.fused()
    wanted = [loop.train_epoch(split, silent)[0] for loop in loops]
    assert engine.train_epoch(split, silent) == pytest.approx(wanted, rel=2e-3)
    for mine, theirs in zip(fused.states, looped.states, strict=True):
        assert apart(mine.params, theirs.params) < 0.1
    exact = Loop(task_of(design), plain.networks[0], runs[0].model_copy(update={"precision": None}), plain.states[0])
    assert wanted[0] == pytest.approx(exact.train_epoch(split, silent)[0], rel=1e-2)
    assert len(engine.evaluate(split)) == len(loops[0].evaluate(split)) + 1


def test_each_case_differs_from_plain_training() -> None:
    """So that a case whose option has no effect is found."""

    def trained(run: Run) -> float:
        (loop,) = begin(DESIGN, [run]).looped()
        for _ in range(2):
            loop.train_epoch(split, silent)
        return loop.evaluate(split)[0][0]["loss"]

    split = split_of(DESIGN, EXAMPLES, torch.float64)
    plain = trained(make_run(DESIGN, seed=1, kind="sgd", lr=0.05))
    for case, options in CASES.items():
        assert abs(trained(run_of(1, options[1])) - plain) > 1e-6, case
