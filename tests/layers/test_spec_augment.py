from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.func import vmap

from support.naive_spec_augment import spec_augment
from tiebreak.layers.dropout import step_keys
from tiebreak.layers.spec_augment import BANDS, FRAMES, Hide, draws, hide
from tiebreak.streams import stream


def keys(steps: int, seed: int = 0) -> Tensor:
    return step_keys(stream(seed, "dropout"), 0, steps, 1)[:, 0]


class Drawn(np.random.Generator):
    """A generator that gives the numbers which a layer has drawn."""

    def __init__(self, numbers: list[float]) -> None:
        super().__init__(np.random.PCG64(0))
        self._numbers = iter(numbers)

    def integers(self, low: int, high: int) -> int:  # type: ignore[override]
        return low + int(np.float32(next(self._numbers)) * np.float32(high - low))


@given(
    rows=st.integers(1, 4), length=st.integers(2, 120), bands=st.integers(2, 90), stretches=st.integers(1, 3),
    seed=st.integers(0, 10_000), padded=st.booleans(),
)  # fmt: skip
def test_it_hides_what_the_reference_hides(
    rows: int, length: int, bands: int, stretches: int, seed: int, padded: bool
) -> None:
    drawn = draws(keys(1, seed)[0], rows, stretches)
    features = torch.ones(rows, length, bands)
    frames = torch.arange(rows) % length + 1 if padded else None
    found = hide(features, drawn, frames)
    for row in range(rows):
        sound = length if frames is None else int(frames[row])
        wanted = spec_augment(
            features[row, :sound].numpy(), Drawn(drawn[row].flatten().tolist()),
            time_masks=stretches, mel_masks=stretches, time_width=FRAMES, mel_width=BANDS,
        )  # fmt: skip
        np.testing.assert_array_equal(found[row, :sound].numpy(), wanted)
        rest = found[row, sound:]  # no stretch of time lies there; those of bands cross it
        assert torch.equal(rest, (found[row].sum(dim=0) > 0).float().expand_as(rest)) or sound == 0


def test_widths_and_places_are_drawn_evenly() -> None:
    features = torch.ones(4000, 200, 80)
    hidden = hide(features, draws(keys(1)[0], 4000, 1)) == 0
    times, bars = hidden.all(dim=2).sum(dim=1), hidden.all(dim=1).sum(dim=1)
    assert (int(times.min()), int(times.max())) == (0, FRAMES)
    assert (int(bars.min()), int(bars.max())) == (0, BANDS)
    assert float(times.float().mean()) == pytest.approx(FRAMES / 2, abs=1)  # 5 standard errors
    assert float(bars.float().mean()) == pytest.approx(BANDS / 2, abs=0.4)
    share = hidden.all(dim=2).float().mean(dim=0)  # of each frame: less at the ends, where fewer stretches reach
    assert float(share[60:140].std()) < 0.02
    assert float(share[0]) < float(share[100]) > float(share[-1])


def test_the_layer_hides_in_training_only_and_anew_at_every_step() -> None:
    layer, features = Hide(2), torch.rand(3, 50, 13) + 1
    first, second = keys(2)
    layer.key.copy_(first)
    found = layer(features)
    assert (found == 0).any()
    assert torch.equal(found[found != 0], features[found != 0])
    assert torch.equal(layer(features), found)
    layer.key.copy_(second)
    assert not torch.equal(layer(features), found)
    assert layer.eval()(features) is features


def test_runs_hide_together_what_they_hide_alone() -> None:
    features, frames = torch.rand(5, 30, 8), torch.tensor([30, 2, 17, 1, 9])

    def one(key: Tensor) -> Tensor:
        return hide(features, draws(key, 5, 2), frames)

    together = vmap(one)(keys(4))
    for number, key in enumerate(keys(4)):
        assert torch.equal(together[number], one(key))
