"""The update of all parameters at once against the rules one by one, over several steps in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from support.twins import apart, make_run, tensors
from tiebreak import catalog
from tiebreak.train.foreach_update import Tensors, update_all
from tiebreak.train.optim import per_step
from tiebreak.train.step import State, apply_update, hyper_tensors, initial_state

STEPS = 4
CASES: dict[str, dict[str, Any]] = {
    "sgd": {"kind": "sgd"},
    "sgd with everything": {"kind": "sgd", "momentum": 0.9, "weight_decay": 0.1, "clip_norm": 0.5, "ema": 0.7},
    "nesterov": {"kind": "sgd-nesterov", "momentum": 0.9, "weight_decay": 0.1},
    "summed": {"kind": "sgd-summed", "weight_decay": 0.1},
    "adam": {"kind": "adam", "weight_decay": 0.1, "ema": 0.5},
    "adam without its means": {"kind": "adam", "beta1": 0.0, "beta2": 0.0, "eps": 0.0},
    "adamw": {"kind": "adamw", "weight_decay": 0.1},
    "nadam": {"kind": "nadam"},
    "rmsprop": {"kind": "rmsprop"},
    "rmsprop with momentum": {"kind": "rmsprop", "momentum": 0.5},
    "adagrad": {"kind": "adagrad"},
    "lion": {"kind": "lion", "weight_decay": 0.1},
}


@pytest.mark.parametrize("case", CASES)
def test_all_at_once_is_one_by_one(case: str) -> None:
    run = make_run(catalog.DESIGNS["mlp"], lr=0.1, **CASES[case])
    kind = run.optimiser.kind
    states: list[State] = []
    for _ in range(2):
        network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)).double()
        with torch.no_grad():
            for number, parameter in enumerate(network.parameters()):
                parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view(parameter.shape) + number)
        states.append(initial_state(network, run))
    hypers = hyper_tensors(run, next(iter(states[0].params.values())))
    changing = per_step(kind, hypers, np.linspace(1, 0.5, STEPS), 0)
    fixed = {name: float(value) for name, value in hypers.items()}
    start = {name: values.clone() for name, values in states[0].params.items()}
    generator = torch.Generator().manual_seed(0)
    for step in range(STEPS):
        gradient = tuple(
            torch.randn(values.shape, generator=generator, dtype=values.dtype) for values in states[0].params.values()
        )
        apply_update(kind, states[0], gradient, hypers | {name: values[step] for name, values in changing.items()})
        numbers = fixed | {name: float(values[step]) for name, values in changing.items()}
        update_all(kind, Tensors.of(states[1]), gradient, numbers, hypers, torch.tensor(step + 1.0))
        assert apart(tensors(states[1]), tensors(states[0])) < 1e-12
        assert apart(states[1].averages, states[0].averages) < 1e-12
    assert apart(states[1].params, start) > 1e-3
