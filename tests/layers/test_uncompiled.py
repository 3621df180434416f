"""Compiled parts of a user's network run as written, also in a traced step of many runs. Script modules are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from support.twins import apart, silent
from support.zoo import SHAPE, WIDTH, Animal, Net
from support.zoo_runs import begin, examples, runs_of
from tiebreak.errors import TiebreakError


def fails(graph: object, inputs: object) -> Callable[..., object]:
    """A compiler that nobody should call."""
    raise AssertionError("compiled")


class CompiledLayers(Net):
    def more(self) -> None:
        self.inner = torch.compile(nn.Sequential(nn.Linear(36, WIDTH), nn.Tanh()), backend=fails)
        self.out.compile(backend=fails)


class CompiledFunction(Net):
    def more(self) -> None:
        self.gate = torch.compile(lambda x: x * torch.sigmoid(x), backend="eager")

    def middle(self, x: torch.Tensor) -> object:
        return self.gate(x)


class Scripted(Net):
    def more(self) -> None:
        with pytest.warns(DeprecationWarning, match="script"):
            self.part = torch.jit.script(nn.Linear(WIDTH, WIDTH))


@pytest.mark.filterwarnings("ignore:.*leaf Tensor")  # torch's compiler, in a loop
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("build", [CompiledLayers, CompiledFunction])
def test_compiled_parts_are_fused(build: type[Net]) -> None:
    animal, split = Animal(build), examples()
    looped, fused = (begin(animal, runs_of(animal, 2)) for _ in range(2))
    losses = fused.fused().train_epoch(split, silent)
    assert losses == pytest.approx([each.train_epoch(split, silent)[0] for each in looped.looped()], rel=1e-10)
    for mine, wanted in zip(fused.states, looped.states, strict=True):
        assert apart(mine.params, wanted.params) < 1e-10


def test_a_script_module_is_refused_by_its_name() -> None:
    with pytest.raises(TiebreakError, match=r"layer 'part' is compiled by torch\.jit"):
        Animal(Scripted).design().network(SHAPE, {}, 0)
