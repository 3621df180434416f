"""Networks may give other types than their first parameter has: wider, or of 16 bits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from support.twins import silent
from support.zoo import Animal, Net
from support.zoo_runs import begin, examples, runs_of
from tiebreak.tasks.class_outcomes import class_outcomes


class WideHead(Net):
    """The last layer in float64."""

    def more(self) -> None:
        self.out.double()

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.out(torch.tanh(self.inner(images.flatten(1))).double())
        return found


class RoundedOutput(Net):
    """As under an autocast of the user's."""

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = super().forward(images).bfloat16()
        return found


@pytest.mark.parametrize("build", [WideHead, RoundedOutput])
def test_other_types_of_logits_train_alike_fused_and_in_a_loop(build: type[Net]) -> None:
    animal = Animal(build)
    split = {name: each.float() if each.is_floating_point() else each for name, each in examples().items()}
    looped, fused = (begin(animal, runs_of(animal, 2), None) for _ in range(2))
    engine = fused.fused()
    losses = engine.train_epoch(split, silent)
    assert losses == pytest.approx([each.train_epoch(split, silent)[0] for each in looped.looped()], rel=1e-4)
    for ours, loop in zip(engine.evaluate(split), looped.looped(), strict=True):
        assert ours[0]["loss"] == pytest.approx(loop.evaluate(split)[0][0]["loss"], rel=1e-2)


def test_outcomes_of_logits_in_16_bits_are_float32() -> None:
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).bfloat16()
    found, wanted = (class_outcomes(each, torch.arange(5) % 3) for each in (logits, logits.float()))
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
