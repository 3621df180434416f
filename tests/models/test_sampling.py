from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tiebreak.models.decoding import Sampling, probabilities, sample

LOGITS = torch.log(torch.tensor([[0.1, 0.4, 0.2, 0.3]], dtype=torch.float64))


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        (Sampling(), [0.1, 0.4, 0.2, 0.3]),
        (Sampling(temperature=0.5), [0.01 / 0.3, 0.16 / 0.3, 0.04 / 0.3, 0.09 / 0.3]),
        (Sampling(temperature=0.0), [0, 1, 0, 0]),
        (Sampling(top_k=2), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(top_k=1), [0, 1, 0, 0]),
        (Sampling(top_p=0.5), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(top_p=0.0), [0, 1, 0, 0]),
        (Sampling(top_p=0.8), [0, 4 / 9, 2 / 9, 3 / 9]),
        (Sampling(top_p=0.8, top_k=2), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(top_k=9), [0.1, 0.4, 0.2, 0.3]),
    ],
)
def test_what_is_drawn_from(how: Sampling, wanted: list[float]) -> None:
    assert probabilities(LOGITS, how)[0].tolist() == pytest.approx(wanted, abs=1e-12)


@given(
    st.lists(st.floats(-30, 30), min_size=1, max_size=12),
    st.floats(0.05, 5),
    st.integers(0, 14),
    st.floats(0, 1),
)
def test_probabilities_sum_to_one_keep_the_likeliest_and_no_more_than_asked(
    logits: list[float], temperature: float, top_k: int, top_p: float
) -> None:
    given_ = torch.tensor([logits], dtype=torch.float64)
    found = probabilities(given_, Sampling(temperature=temperature, top_k=top_k, top_p=top_p))[0]
    assert float(found.sum()) == pytest.approx(1.0)
    assert float(found[int(given_.argmax())]) == float(found.max()) > 0
    assert int((found > 0).sum()) <= (top_k or len(logits))


def step(token: Tensor, state: int) -> tuple[Tensor, int]:
    """The same chances at every step."""
    return LOGITS.expand(len(token), -1), state


def test_shares_of_many_draws_are_the_probabilities() -> None:
    rows, lengths = sample(step, 0, torch.zeros(50, dtype=torch.long), 200, sampling=Sampling(seed=1))
    shares = torch.bincount(rows.flatten(), minlength=4) / rows.numel()
    assert shares.tolist() == pytest.approx([0.1, 0.4, 0.2, 0.3], abs=0.02)
    assert lengths.tolist() == [200] * 50


def test_a_row_ends_at_its_end_and_all_is_over_when_all_have_ended() -> None:
    rows, lengths = sample(step, 0, torch.zeros(5, dtype=torch.long), 500, sampling=Sampling(), end=1)
    assert rows.shape[1] < 500
    for row, length in zip(rows.tolist(), lengths.tolist(), strict=True):
        assert 1 not in row[:length]
        assert set(row[length:]) <= {1}


def test_a_seed_repeats_and_the_global_generator_is_left_alone() -> None:
    before = torch.get_rng_state()
    start = torch.zeros(2, dtype=torch.long)
    first, again, other = (sample(step, 0, start, 30, sampling=Sampling(seed=seed))[0] for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(before, torch.get_rng_state())


def probabilities_naive(logits: list[float], sampling: Sampling) -> list[float]:
    """One token after the other, the likeliest first: the reference."""
    weights = [math.exp(logit / sampling.temperature) for logit in logits]
    chances = [weight / sum(weights) for weight in weights]
    ranked = sorted(range(len(logits)), key=lambda token: -logits[token])  # stable: of equal ones the first
    kept: list[int] = []
    for token in ranked[: sampling.top_k or len(ranked)]:
        if kept and sum(chances[each] for each in kept) >= sampling.top_p:
            break
        kept.append(token)
    total = sum(chances[each] for each in kept)
    return [chances[token] / total if token in kept else 0.0 for token in range(len(logits))]


@given(
    st.lists(st.floats(-4, 4), min_size=1, max_size=7),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.integers(0, 8),
    st.sampled_from([0.0, 0.31, 0.77, 1.0]),
)
def test_probabilities_are_those_of_sorting_by_hand(
    logits: list[float], temperature: float, top_k: int, top_p: float
) -> None:
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    found = probabilities(torch.tensor([logits], dtype=torch.float64), sampling)[0]
    assert found.tolist() == pytest.approx(probabilities_naive(logits, sampling), abs=1e-9)
