from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from tiebreak.layers.global_generators import drawn_from, generator_states, seeded


def draws() -> tuple[float, float, float]:
    return float(torch.rand(())), float(np.random.rand()), random.random()  # noqa: NPY002


@pytest.mark.parametrize("key", [0, 5, 2**63 - 1])
def test_a_key_gives_the_same_draws_and_leaves_no_trace(key: int) -> None:
    before = generator_states()
    with seeded(key):
        first = draws()
    with seeded(key):
        assert draws() == first
    with seeded(key ^ 1):
        assert all(one != other for one, other in zip(draws(), first, strict=True))
    assert drawn_from(before) == ""


def test_torch_draws_what_its_seed_alone_gives() -> None:
    with seeded(12):
        found = torch.rand(3)
    assert torch.equal(found, torch.rand(3, generator=torch.Generator().manual_seed(12)))


def test_the_states_come_back_after_an_error() -> None:
    before = generator_states()
    with pytest.raises(ZeroDivisionError), seeded(1):
        draws()[0] / 0
    assert drawn_from(before) == ""


@pytest.mark.parametrize(
    ("draw", "name"),
    [(lambda: torch.rand(1), "torch"), (lambda: np.random.randn(1), "NumPy"), (random.random, "Python")],  # noqa: NPY002
)
def test_a_draw_is_noticed(draw: object, name: str) -> None:
    with seeded(3):
        before = generator_states()
        assert drawn_from(before) == ""
        draw()  # type: ignore[operator]
        assert drawn_from(before) == name


@pytest.mark.parametrize("gpu", [False, True])
def test_a_draw_is_found_inside_a_transform_too(gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if gpu:  # its generators give their states as the CPU's does
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: [torch.default_generator.get_state()])

    def drawing(x: torch.Tensor) -> torch.Tensor:
        before = generator_states()
        assert drawn_from(before) == ""
        random.random()
        assert drawn_from(before) == "Python"
        return x.square().sum()

    assert torch.equal(torch.func.grad(drawing)(torch.ones(2)), torch.full((2,), 2.0))
