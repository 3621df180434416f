from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.utils.checkpoint import checkpoint

from tiebreak.catalog import DESIGNS
from tiebreak.errors import TiebreakError
from tiebreak.layers.dropout import (
    Dropout,
    drop,
    dropouts,
    keyed,
    mix,
    restart_calls,
    skip_zero_rates,
    step_keys,
    swap_dropout,
)
from tiebreak.models.design import Images
from tiebreak.streams import stream

RATES = [0.05, 0.3, 0.5, 0.7, 0.95]
SIZE = 32_000  # fewer than torch would share out to threads


def mask(run_key: int, step: int, layer: int, size: int = SIZE, rate: float = 0.5) -> Tensor:
    """True where an element is kept."""
    key = step_keys(run_key, step, 1, layer + 1)[0, layer]
    return drop(torch.ones(size), torch.tensor(rate), key) != 0


def correlation(one: Tensor, two: Tensor) -> float:
    return float(np.corrcoef(one.numpy(), two.numpy())[0, 1])


@pytest.mark.parametrize("rate", RATES)
def test_the_share_of_dropped_elements_is_the_rate(rate: float) -> None:
    for seed in range(3):
        dropped = SIZE - int(mask(stream(seed, "dropout"), 0, 0, rate=rate).sum())
        assert abs(dropped - rate * SIZE) < 4.5 * math.sqrt(SIZE * rate * (1 - rate))


@pytest.mark.parametrize("rate", RATES)
def test_the_mean_is_unbiased(rate: float) -> None:
    x = torch.linspace(1, 2, 1000)
    keys = step_keys(stream(0, "dropout"), 0, 4000, 1)[:, 0]
    mean = vmap(drop, in_dims=(None, None, 0))(x, torch.tensor(rate), keys).mean(dim=0)
    deviations = (mean - x) / (x * math.sqrt(rate / (1 - rate) / len(keys)))
    assert float(deviations.abs().max()) < 5
    assert abs(float(deviations.mean())) < 5 / math.sqrt(len(x))
    assert 0.9 < float(deviations.std()) < 1.1


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 2), st.integers(0, 9))
def test_rate_zero_changes_nothing_whatever_the_key(run_key: int, step: int, layer: int) -> None:
    x = torch.linspace(-3, 3, 257)
    key = step_keys(run_key, step, 1, layer + 1)[0, layer]
    assert torch.equal(drop(x, torch.tensor(0.0), key), x)


def test_the_highest_rate_drops_nearly_everything() -> None:
    assert 0 < int(mask(1, 0, 0, rate=0.999).sum()) < 80


def test_evaluation_mode_returns_the_input_itself() -> None:
    layer = Dropout(0.7).eval()
    x = torch.ones(5)
    assert layer(x) is x
    assert not torch.equal(layer.train()(torch.ones(500)), torch.ones(500))


def test_the_mask_is_a_function_of_key_step_layer_and_element() -> None:
    base = mask(1, 2, 3)
    assert torch.equal(base, mask(1, 2, 3))
    for other in (mask(2, 2, 3), mask(1 + 2**32, 2, 3), mask(1, 3, 3), mask(1, 2, 2)):
        assert 0.48 < float((base == other).float().mean()) < 0.52


def test_the_mask_does_not_depend_on_the_shape_or_on_what_follows() -> None:
    assert torch.equal(mask(1, 0, 0, size=60), mask(1, 0, 0, size=100)[:60])
    key, rate = torch.tensor(77, dtype=torch.int32), torch.tensor(0.5)
    assert torch.equal(drop(torch.ones(4, 15), rate, key).flatten(), drop(torch.ones(60), rate, key))


def test_a_stretch_of_steps_has_the_keys_of_its_steps() -> None:
    whole = step_keys(stream(4, "dropout"), 0, 10, 3)
    assert whole.dtype == torch.int32
    assert torch.equal(whole[6:], step_keys(stream(4, "dropout"), 6, 4, 3))
    assert torch.equal(whole[:, :2], step_keys(stream(4, "dropout"), 0, 10, 2))


def test_a_hundred_thousand_keys_hardly_ever_meet() -> None:
    keys = step_keys(stream(0, "dropout"), 0, 33_000, 3)
    expected = 99_000**2 / 2**33  # of two keys in a hash of 32 bits
    assert 99_000 - len(torch.unique(keys)) < expected + 5


def test_every_input_bit_reaches_every_output_bit() -> None:
    start = torch.arange(20_000, dtype=torch.int32) * 40_503
    for bit in range(32):
        changed = mix(start) ^ mix(start ^ (1 << bit if bit < 31 else -(2**31)))
        for out in range(32):
            share = float(((changed >> out) & 1).float().mean())
            assert 0.45 < share < 0.55


def test_mix_is_a_bijection_on_a_sample() -> None:
    assert len(torch.unique(mix(torch.arange(-16_000, 16_000, dtype=torch.int32)))) == 32_000


def test_neighbouring_elements_steps_layers_and_seeds_are_not_correlated() -> None:
    bound = 5 / math.sqrt(SIZE)
    key = stream(0, "dropout")
    base = mask(key, 5, 1)
    for lag in (1, 2, 3, 8, 28, 64, 320, 784):
        assert abs(correlation(base[:-lag], base[lag:])) < bound
    for other in (
        mask(key, 6, 1),
        mask(key, 15, 1),
        mask(key, 5, 0),
        mask(key, 5, 2),
        mask(stream(1, "dropout"), 5, 1),
    ):
        assert abs(correlation(base, other)) < bound
        assert abs(correlation(base[:-1], other[1:])) < bound


def test_one_element_over_the_steps_is_a_fair_sequence() -> None:
    keys = step_keys(stream(0, "dropout"), 0, 20_000, 1)[:, 0]
    kept = vmap(drop, in_dims=(None, None, 0))(torch.ones(4), torch.tensor(0.5), keys) != 0
    for column in kept.T:
        assert abs(float(column.float().mean()) - 0.5) < 5 * 0.5 / math.sqrt(len(keys))
        assert abs(correlation(column[:-1], column[1:])) < 5 / math.sqrt(len(keys))
    assert all(abs(correlation(kept[:, a], kept[:, b])) < 0.04 for a, b in itertools.combinations(range(4), 2))


@pytest.mark.parametrize("seed", range(3))
def test_groups_of_eight_elements_take_every_pattern_equally_often(seed: int) -> None:
    bits = mask(stream(seed, "dropout"), 0, 0, size=8 * 4_000).view(-1, 8).numpy()
    counts = np.bincount(np.packbits(bits, axis=1)[:, 0], minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gradient_is_the_mask_over_one_minus_the_rate(dtype: torch.dtype) -> None:
    x = torch.linspace(1, 2, 1000, dtype=dtype, requires_grad=True)
    rate, key = torch.tensor(0.7, dtype=dtype), step_keys(3, 0, 1, 1)[0, 0]
    out = drop(x, rate, key)
    assert out.dtype == dtype
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(gradient, (out.detach() != 0) / (1 - rate))
    assert torch.equal(out.detach(), x.detach() * gradient)


def test_float64_drops_the_elements_that_float32_drops() -> None:
    key = step_keys(9, 4, 1, 1)[0, 0]
    single, double = Dropout(0.5), Dropout(0.5).double()
    for layer in (single, double):
        layer.key.copy_(key)
    assert double.rate.dtype == torch.float64
    assert double.key.dtype == torch.int32
    assert torch.equal(single(torch.ones(SIZE)).double(), double(torch.ones(SIZE, dtype=torch.float64)))


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(0, 10**6), st.sampled_from([(33,), (4, 7), (2, 3, 5)]))
def test_the_mask_is_the_same_alone_and_under_vmap(run_key: int, step: int, shape: tuple[int, ...]) -> None:
    keys = step_keys(run_key, step, 3, 2)[:, 1]
    rates = torch.tensor([0.0, 0.5, 0.7])
    x = torch.linspace(-1, 1, 3 * math.prod(shape)).view(3, *shape)
    fused = vmap(drop)(x, rates, keys)
    alone = torch.stack([drop(*each) for each in zip(x, rates, keys, strict=True)])
    assert torch.equal(fused, alone)
    shared = vmap(drop, in_dims=(None, None, 0))(x[0], rates[1], keys)
    assert torch.equal(shared, torch.stack([drop(x[0], rates[1], key) for key in keys]))


def test_a_layer_in_a_network_is_the_same_alone_and_under_vmap() -> None:
    networks = [nn.Sequential(nn.Identity(), Dropout(0.5), nn.Identity(), Dropout(0.2)) for _ in range(3)]
    for number, network in enumerate(networks):
        for index, layer in enumerate(dropouts(network)):
            layer.key.copy_(step_keys(stream(number, "dropout"), 8, 1, 2)[0, index])
    params, buffers = stack_module_state(networks)
    x = torch.linspace(-1, 1, 60).view(3, 20)

    def call(own: dict[str, Tensor], its: dict[str, Tensor], x: Tensor) -> Tensor:
        return functional_call(networks[0], (own, its), (x,))  # type: ignore[no-any-return]

    fused = vmap(call)(params, buffers, x)
    restart_calls(networks[0])
    assert torch.equal(fused, torch.stack([network(row) for network, row in zip(networks, x, strict=True)]))


def test_layers_are_found_in_order_and_their_state_is_not_saved() -> None:
    network = DESIGNS["cnn-pool"].network(Images(channels=1, height=28, width=28, classes=4), {}, 0)
    (layer,) = dropouts(network)
    assert float(layer.rate) == pytest.approx(0.7)
    assert not any("dropout" in name for name in network.state_dict())
    nested = nn.Sequential(Dropout(0.1), nn.Sequential(Dropout(0.2)), Dropout(0.3))
    assert [round(float(layer.rate), 1) for layer in dropouts(nested)] == [0.1, 0.2, 0.3]


def mix_naive(bits: int) -> int:
    """The finaliser on Python's integers, 32 bits without a sign: the reference."""
    bits ^= bits >> 16
    bits = stir_naive(bits)
    return bits ^ bits >> 16


def stir_naive(bits: int) -> int:
    """The finaliser without its outer shifts."""
    bits = bits * 0x7FEB352D % 2**32
    bits ^= bits >> 15
    return bits * 0x846CA68B % 2**32


@given(st.integers(0, 2**63 - 1), st.integers(0, 10_000), st.integers(0, 5), st.sampled_from([0.0, 0.1, 0.5, 0.9]))
def test_it_is_the_formula_element_by_element_with_its_gradient(
    run_key: int, step: int, layer: int, rate: float
) -> None:
    key = step_keys(run_key, step, 1, layer + 1)[0, layer]
    low, high = ((run_key & 0xFFFFFFFF) - 2**31) % 2**32, run_key >> 32
    expected_key = mix_naive(mix_naive(mix_naive(step ^ low) ^ high) ^ layer * 0x9E3779B9 % 2**32)
    assert int(key) % 2**32 == expected_key
    x = torch.randn(3, 7, requires_grad=True)
    out = drop(x, torch.tensor(rate), key)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    for place, (value, slope) in enumerate(zip(out.flatten().tolist(), gradient.flatten().tolist(), strict=True)):
        bits = stir_naive(expected_key ^ mix_naive(place))
        signed = bits - 2**32 if bits >= 2**31 else bits
        keep = signed >= torch.tensor(rate).item() * 2.0**32 - 2.0**31
        assert slope == pytest.approx(keep / (1 - rate))
        assert value == pytest.approx(float(x.detach().flatten()[place]) * slope)


def test_every_call_in_a_pass_draws_its_own_mask_and_the_first_is_the_layers_key() -> None:
    layer, ones = Dropout(0.5), torch.ones(SIZE)
    layer.key.copy_(step_keys(3, 0, 1, 1)[0, 0])
    found = [layer(ones) for _ in range(20)]
    assert torch.equal(found[0], drop(ones, layer.rate, layer.key))
    for one, other in itertools.combinations(found, 2):
        assert abs(correlation(one, other)) < 5 / math.sqrt(SIZE)
    restart_calls(layer)
    assert all(torch.equal(layer(ones), each) for each in found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_rate_of_one_gives_zeros_and_a_gradient_of_zeros(dtype: torch.dtype) -> None:
    """0 / 0 was NaN; and float32 rounds the highest of 2^32 numbers up to the limit, which kept some elements."""
    x = torch.linspace(-1, 1, 257, dtype=dtype, requires_grad=True)
    for key in (0, 5, 2**31 - 1):
        out = drop(x, torch.tensor(1.0, dtype=dtype), torch.tensor(key, dtype=torch.int32))
        assert not out.any()
        assert not torch.autograd.grad(out.sum(), x)[0].any()
    rates, keys = torch.tensor([1.0, 0.5], dtype=dtype), torch.tensor([1, 1], dtype=torch.int32)
    fused = vmap(drop, in_dims=(None, 0, 0))(x, rates, keys)
    assert not fused[0].any()
    assert fused[1].isfinite().all()


def test_a_layer_in_two_places_is_swapped_in_both_and_stays_one() -> None:
    layer = nn.Dropout(0.3)
    inner, named = nn.Sequential(layer, layer), nn.ModuleDict({"again": layer})
    network = nn.Sequential(inner, named)
    swap_dropout(network)
    assert isinstance(layer, Dropout)
    assert inner[0] is inner[1] is named["again"] is layer
    assert list(keyed(network)) == ["0.0"]


def test_dropout_in_place_changes_its_input() -> None:
    network = nn.Sequential(nn.Dropout(0.5, inplace=True))
    swap_dropout(network)
    x = torch.ones(100)
    assert network(x) is x
    assert 20 < int((x == 0).sum()) < 80


def test_a_recomputed_part_gets_the_mask_of_its_first_computation() -> None:
    layer = Dropout(0.5)
    x = torch.linspace(1, 2, 100, requires_grad=True)
    out = checkpoint(lambda x: layer(x).square(), x, use_reentrant=False)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(gradient, 2 * x.detach() * (out.detach() != 0) * 4)
    twice = checkpoint(lambda x: layer(layer(x)).square(), x, use_reentrant=False)
    with pytest.raises(TiebreakError, match=r"torch\.utils\.checkpoint"):
        torch.autograd.grad(twice.sum(), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_layer_that_is_known_to_drop_nothing_gives_the_same_bits(dtype: torch.dtype) -> None:
    layer, x = Dropout(0.0), torch.randn(5, 3).to(dtype)
    layer.key.copy_(step_keys(3, 0, 1, 1)[0, 0])
    masked = layer(x)
    skip_zero_rates(layer, {"rate": torch.zeros(4)})
    assert layer.idle
    assert layer(x).dtype == masked.dtype
    assert torch.equal(layer(x), masked)
    skip_zero_rates(layer, {"rate": torch.tensor([0.0, 0.1])})
    assert not layer.idle
