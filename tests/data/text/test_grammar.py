"""The entropy of the generated language against brute force on languages small enough to write out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tiebreak.data.text.grammar import Grammar, make_grammar


def tiny(seed: int, classes: int = 2, words: int = 2) -> Grammar:
    generator = np.random.default_rng(seed)
    transitions = generator.random((classes,) * 3) + 0.05
    shares = generator.random((classes, words)) + 0.05
    return Grammar(
        words=tuple(map(str, range(classes * words))),
        transitions=transitions / transitions.sum(2, keepdims=True),
        classes=np.repeat(np.arange(classes), words),
        shares=(shares / shares.sum(1, keepdims=True)).ravel(),
    )


def chance(grammar: Grammar, text: tuple[int, ...]) -> float:
    """The probability of a text that starts in the stationary distribution, word by word."""
    classes = grammar.classes[list(text)]
    pairs = grammar.pairs()
    product = pairs[classes[0], classes[1]] if len(text) > 1 else pairs.sum(1)[classes[0]]
    for place in range(2, len(text)):
        product *= grammar.transitions[classes[place - 2], classes[place - 1], classes[place]]
    return float(product * np.prod(grammar.shares[list(text)]))


def block_entropy(grammar: Grammar, length: int) -> float:
    texts = itertools.product(range(len(grammar.words)), repeat=length)
    chances = np.array([chance(grammar, text) for text in texts])
    assert chances.sum() == pytest.approx(1)
    return float(-(chances * np.log(chances)).sum())


@pytest.mark.parametrize("seed", range(4))
def test_the_entropy_is_that_of_all_texts_written_out(seed: int) -> None:
    grammar = tiny(seed)
    blocks = [block_entropy(grammar, length) for length in (1, 2, 3, 4, 5)]
    differences = np.diff(blocks)
    assert differences[0] == pytest.approx(grammar.one_back(), abs=1e-12)  # only the word before is known
    np.testing.assert_allclose(differences[1:], grammar.entropy(), atol=1e-12)  # a third word back adds nothing


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_the_stationary_distribution_stays(seed: int, classes: int) -> None:
    grammar = tiny(seed, classes)
    pairs = grammar.pairs()
    assert pairs.min() > 0
    assert pairs.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.einsum("ab,abc->bc", pairs, grammar.transitions), pairs, atol=1e-12)
    assert grammar.entropy() <= grammar.one_back() + 1e-12


def test_the_realised_floor_is_the_mean_of_every_conditional_probability() -> None:
    grammar = tiny(3)
    text = (0, 3, 1, 1, 2, 0, 2)
    logs = [np.log(chance(grammar, text[: end + 1]) / chance(grammar, text[:end])) for end in range(1, len(text))]
    assert grammar.realised(np.array(text)) == pytest.approx(np.exp(-np.mean(logs)))
    assert grammar.realised(np.array(text[:2])) == pytest.approx(np.exp(-logs[0]))


def fitted_perplexity(train: NDArray[np.int32], test: NDArray[np.int32], size: int) -> float:
    """Of counted pairs of words, smoothed: a real model that sees one word back."""
    counts = np.full((size, size), 0.1)
    np.add.at(counts, (train[:-1], train[1:]), 1)
    table = counts / counts.sum(1, keepdims=True)
    return float(np.exp(-np.log(table[test[:-1], test[1:]]).mean()))


def test_long_streams_come_near_both_floors() -> None:
    grammar = make_grammar()
    train, test = grammar.sample(200_000, 1), grammar.sample(50_000, 2)
    assert grammar.realised(train) == pytest.approx(np.exp(grammar.entropy()), rel=0.01)
    one_back = np.exp(grammar.one_back())
    assert one_back * 0.98 < fitted_perplexity(train, test, len(grammar.words)) < one_back * 1.03
    assert one_back > 1.5 * np.exp(grammar.entropy())  # memory pays


def test_a_model_that_is_wrong_is_above_the_floor_and_luck_is_small() -> None:
    grammar, test = tiny(5, classes=3, words=3), tiny(5, classes=3, words=3).sample(6000, 7)
    floor = grammar.realised(test)
    for seed in range(20):
        noise = np.exp(0.1 * np.random.default_rng(seed).standard_normal(grammar.transitions.shape))
        wrong = grammar.transitions * noise
        wrong /= wrong.sum(2, keepdims=True)
        other = Grammar(words=grammar.words, transitions=wrong, classes=grammar.classes, shares=grammar.shares)
        assert other.realised(test) > floor


def test_samples_follow_their_key_and_the_shares() -> None:
    grammar = make_grammar()
    first = grammar.sample(20_000, 4)
    np.testing.assert_array_equal(first, grammar.sample(20_000, 4))
    assert (first != grammar.sample(20_000, 5)).mean() > 0.5
    assert first.dtype == np.int32
    expected = grammar.pairs().sum(0)[grammar.classes] * grammar.shares
    np.testing.assert_allclose(np.bincount(first, minlength=51) / len(first), expected, atol=0.01)
