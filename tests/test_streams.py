from __future__ import annotations

import random

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.streams import KEY_BITS, stream

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x1f"), max_size=8)
PARTS = st.lists(st.integers() | TEXT, max_size=3)


def test_keys_are_the_ones_that_stored_results_were_made_with() -> None:
    assert stream(0, "init") == 0x5DECA9B3BDBD2AC0
    assert stream(3, "order", 14) == 0x19A61B3A0D3B2E98


@given(st.integers(), TEXT, PARTS)
def test_a_key_is_a_function_of_its_name_and_fits_every_generator(seed: int, purpose: str, parts: list[str]) -> None:
    key = stream(seed, purpose, *parts)
    assert key == stream(seed, purpose, *parts)
    assert 0 <= key < 2**KEY_BITS
    np.random.Philox(key)
    torch.Generator().manual_seed(key)


@given(
    st.tuples(st.integers(0, 99), st.sampled_from(["order", "init"]), PARTS),
    st.tuples(st.integers(0, 99), st.sampled_from(["order", "init"]), PARTS),
)
def test_different_names_have_different_keys(
    one: tuple[int, str, list[str]], other: tuple[int, str, list[str]]
) -> None:
    same = repr(one) == repr(other)
    assert (stream(one[0], one[1], *one[2]) == stream(other[0], other[1], *other[2])) is same


def test_a_number_and_its_digits_are_different_names() -> None:
    assert stream(0, "order", 1) != stream(0, "order", "1")
    assert stream(0, "order", 1, 2) != stream(0, "order", 12)


def test_no_generator_is_touched() -> None:
    before = torch.get_rng_state(), random.getstate(), repr(np.random.get_state())  # noqa: NPY002
    stream(0, "order", 1)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert before[2] == repr(np.random.get_state())  # noqa: NPY002
