from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from support import bad_studies
from tiebreak.plan.resolve import RULE_HYPERS, comparison_count, complete, hypers, task_options, uses_hyper
from tiebreak.study.registry import Option
from tiebreak.study.schema import Optimiser, Study
from tiebreak.train import optim

Make = Callable[..., Study]
POOL, STRIDED, PAIR = bad_studies.POOL, bad_studies.STRIDED, bad_studies.PAIR
SHUFFLED = {"name": "shuffled", "design": "cnn-pool", "options": {"shuffle_pixels": True}}


def test_every_known_option_gets_its_given_value_or_its_default() -> None:
    known = {"width": Option(default=8, line=""), "tied": Option(default=False, line="")}
    assert complete(known, {"width": 4}) == {"width": 4, "tied": False}
    assert complete({}, {"width": 4}) == {}


def test_options_come_from_defaults_then_protocol_then_study_then_arm(tiny_study: Make) -> None:
    study = tiny_study(
        data="octmnist",
        protocol="as-reported",
        options={"test_images": "all"},
        arms=[POOL, {**STRIDED, "options": {"divisor": 255}}, {**SHUFFLED, "protocol": "audited"}],
    )
    reported = {"divisor": 256, "test_images": "all", "shuffle_pixels": False, "resize": 0}
    assert [task_options(study, arm) for arm in study.arms] == [
        reported,
        {**reported, "divisor": 255},
        {"divisor": 255, "test_images": "all", "shuffle_pixels": True, "resize": 0},
    ]


def test_hyper_parameters_come_from_defaults_then_study_then_arm_then_setting(tiny_study: Make) -> None:
    study = tiny_study(
        fixed={"momentum": 0.5, "eps": 1e-6}, grid={"lr": [0.2]}, arms=[{**POOL, "fixed": {"momentum": 0.9}}, STRIDED]
    )
    values = hypers(study, study.arms[0], {"lr": 0.2})
    assert (values["lr"], values["momentum"], values["eps"], values["beta1"]) == (0.2, 0.9, 1e-6, 0.9)
    assert values["dropout"] is None
    assert hypers(study, study.arms[1], {})["momentum"] == 0.5


def test_a_best_setting_counts_once_per_other_setting(tiny_study: Make) -> None:
    study = tiny_study(fixed=None, grid={"lr": [0.1, 0.2, 0.3]}, comparisons=[PAIR, bad_studies.SETTING])
    assert comparison_count(study) == 3


def test_an_order_counts_once_per_two_neighbours_and_an_agreement_once() -> None:
    study = Study.load("speech-decoder")
    pairs = sum(item.kind == "pair" for item in study.comparisons)
    assert comparison_count(study) == pairs + 1 + 2


@pytest.mark.parametrize("kind", get_args(Optimiser.model_fields["kind"].annotation))
def test_the_table_of_hyper_parameters_agrees_with_the_update_rules(kind: Any) -> None:
    def trained(name: str, value: float) -> Tensor:
        given = {"lr": 0.1, "momentum": 0.1, "beta1": 0.9, "beta2": 0.9, "eps": 1e-8, name: value}
        rule = {key: torch.tensor(each, dtype=torch.float64) for key, each in given.items()}
        param = torch.tensor([1.0, -2.0], dtype=torch.float64)
        slots = optim.empty_slots(kind, param, rule)
        changing = optim.per_step(kind, rule, np.ones(4), 0)
        for step in range(4):
            now = {**rule, **{key: values[step] for key, values in changing.items()}}
            gradient = torch.tensor([0.3, -0.5], dtype=torch.float64) * (1.0, 0.2, -0.4, 0.1)[step]
            param, slots = optim.update(kind, param, gradient, slots, now)
        return param

    for name in RULE_HYPERS:
        assert uses_hyper(kind, name) == (not torch.equal(trained(name, 0.05), trained(name, 0.95))), name
