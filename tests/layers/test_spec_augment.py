from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.func import vmap

from tiebreak.layers.dropout import restart_calls, step_keys
from tiebreak.layers.spec_augment import BANDS, FRAMES, SpecAugment, spec_augment, spec_augment_naive, uniforms
from tiebreak.streams import stream


def keys(steps: int, seed: int = 0) -> Tensor:
    return step_keys(stream(seed, "dropout"), 0, steps, 1)[:, 0]


@given(
    rows=st.integers(1, 4), length=st.integers(2, 120), bands=st.integers(2, 90), stretches=st.integers(1, 3),
    seed=st.integers(0, 10_000), padded=st.booleans(),
)  # fmt: skip
def test_both_forms_agree_with_their_gradients(
    rows: int, length: int, bands: int, stretches: int, seed: int, padded: bool
) -> None:
    drawn = uniforms(keys(1, seed)[0], rows, stretches)
    features = torch.ones(rows, length, bands, requires_grad=True)
    frames = torch.arange(rows) % length + 1 if padded else None
    found, expected = (form(features, drawn, frames) for form in (spec_augment, spec_augment_naive))
    assert torch.equal(found, expected)
    above = torch.arange(1.0, features.numel() + 1).view_as(features)
    slopes = [torch.autograd.grad(each, features, above)[0] for each in (found, expected)]
    assert torch.equal(slopes[0], slopes[1])
    for row in range(rows if padded else 0):  # stretches of time end where the sound does; those of bands go on
        rest = found[row, row % length + 1 :]
        assert torch.equal(rest, (found[row].sum(dim=0) > 0).float().expand_as(rest))


def test_widths_and_places_are_drawn_evenly() -> None:
    features = torch.ones(4000, 200, 80)
    hidden = spec_augment(features, uniforms(keys(1)[0], 4000, 1)) == 0
    times, bars = hidden.all(dim=2).sum(dim=1), hidden.all(dim=1).sum(dim=1)
    assert (int(times.min()), int(times.max())) == (0, FRAMES)
    assert (int(bars.min()), int(bars.max())) == (0, BANDS)
    assert float(times.float().mean()) == pytest.approx(FRAMES / 2, abs=1)  # 5 standard errors
    assert float(bars.float().mean()) == pytest.approx(BANDS / 2, abs=0.4)
    share = hidden.all(dim=2).float().mean(dim=0)  # of each frame: less at the ends, where fewer stretches reach
    assert float(share[60:140].std()) < 0.02
    assert float(share[0]) < float(share[100]) > float(share[-1])


def test_the_layer_hides_in_training_only_and_anew_at_every_step() -> None:
    layer, features = SpecAugment(2), torch.rand(3, 50, 13) + 1
    first, second = keys(2)
    layer.key.copy_(first)
    found = layer(features)
    assert (found == 0).any()
    assert torch.equal(found[found != 0], features[found != 0])
    assert not torch.equal(layer(features), found)  # the second call in a pass
    restart_calls(layer)
    assert torch.equal(layer(features), found)
    restart_calls(layer)
    layer.key.copy_(second)
    assert not torch.equal(layer(features), found)
    assert layer.eval()(features) is features


def test_runs_hide_together_what_they_hide_alone() -> None:
    features, frames = torch.rand(5, 30, 8), torch.tensor([30, 2, 17, 1, 9])

    def one(key: Tensor) -> Tensor:
        return spec_augment(features, uniforms(key, 5, 2), frames)

    together = vmap(one)(keys(4))
    for number, key in enumerate(keys(4)):
        assert torch.equal(together[number], one(key))
