"""A generated language whose entropy is known exactly, so that a language model can be held against what is possible.

Words belong to classes. The next class depends on the two classes before it, the word on its class only:

    p(w_t | w_1 ... w_{t-1}) = A[c_{t-2}, c_{t-1}, c_t] · B[w_t],     c_t = class of w_t

A word tells its class, so the past matters through the last two classes only, and with π the stationary distribution
of pairs of classes the entropy rate, in nats, is

    H = Σ π[a, b] ( H(A[a, b, ·]) + Σ_c A[a, b, c] H(B within c) ).

exp H is the perplexity that no model goes below in expectation. On a given stream the model that knows A and B has the
perplexity `realised`; another one can go below that by the luck of the draw only, which is a factor of about 1 - 1/n
with n tokens. A model that sees only one word back cannot go below exp `one_back`.

Probabilities come from uniform numbers of the named stream alone, so that they do not depend on the version of numpy.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.text.tokens import END
from tiebreak.streams import stream

CONSONANTS = "bdkms"  # a class each, so that people can read the grammar too
ENDINGS = [vowel + end for end in ("", "n") for vowel in "aeiou"]
SHARPNESS = 3.0  # how uneven the next class is: 0 makes all equally likely
LEAST = 0.01  # probability of any class after any two, so that every stream visits everything

Probabilities = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Grammar:
    """K classes, V words: transitions A [K, K, K], the class of each word [V], its share of the class B [V]."""

    words: tuple[str, ...]
    transitions: Probabilities
    classes: NDArray[np.int64]
    shares: Probabilities

    def pairs(self) -> Probabilities:
        """The stationary distribution π [K, K] of the classes of two words in a row."""
        count = len(self.transitions)
        step = np.zeros((count, count, count, count))  # from (a, b) to (b, c)
        for middle in range(count):
            step[:, middle, middle, :] = self.transitions[:, middle, :]
        flat = step.reshape(count**2, count**2)
        system = np.vstack([flat.T - np.eye(count**2), np.ones(count**2)])
        solution, *_ = np.linalg.lstsq(system, np.append(np.zeros(count**2), 1.0))
        return np.asarray(solution).reshape(count, count)

    def entropy(self) -> float:
        """The entropy rate in nats per word."""
        pairs = self.pairs()
        return float((pairs * _entropies(self.transitions)).sum()) + self._of_words(pairs)

    def one_back(self) -> float:
        """The entropy in nats of a word of which only the word before is known."""
        pairs = self.pairs()
        before = pairs.sum(0)
        return float(before @ _entropies(self._after_one(pairs))) + self._of_words(pairs)

    def _of_words(self, pairs: Probabilities) -> float:
        within = np.bincount(self.classes, -self.shares * np.log(self.shares), len(pairs))
        return float(pairs.sum(0) @ within)

    def _after_one(self, pairs: Probabilities) -> Probabilities:
        """The probability [K, K] of a class after one whose predecessor is not known."""
        return np.asarray(np.einsum("ab,abc->bc", pairs, self.transitions) / pairs.sum(0)[:, None])

    def realised(self, tokens: NDArray[np.integer]) -> float:
        """The perplexity of the model that knows the grammar on a stream, of every token but the first."""
        classes = self.classes[tokens]
        second = self._after_one(self.pairs())[classes[:-1][:1], classes[1:][:1]]
        later = self.transitions[classes[:-2], classes[1:-1], classes[2:]]
        logs = np.log(np.concatenate([second, later])) + np.log(self.shares[tokens[1:]])
        return float(np.exp(-logs.mean()))

    def sample(self, count: int, key: int) -> NDArray[np.int32]:
        """A stream of words that starts in the stationary distribution."""
        draws = np.random.Generator(np.random.Philox(key)).random((2, count))
        size = len(self.transitions)
        first = int(np.searchsorted(np.cumsum(self.pairs().ravel()), draws[0, 0], side="right"))
        before, last = divmod(min(first, size**2 - 1), size)
        tables = np.cumsum(self.transitions, axis=2).tolist()
        path = []
        for draw in draws[0, 1:].tolist():
            path.append(last)
            before, last = last, min(bisect_right(tables[before][last], draw), size - 1)
        path.append(last)
        return self._spell(np.array(path), draws[1])

    def _spell(self, path: NDArray[np.int64], draws: Probabilities) -> NDArray[np.int32]:
        """A word of each class of a path, by the shares."""
        tokens = np.empty(len(path), np.int32)
        for name in range(len(self.transitions)):
            members, places = np.flatnonzero(self.classes == name), np.flatnonzero(path == name)
            chosen = np.searchsorted(np.cumsum(self.shares[members]), draws[places], side="right")
            tokens[places] = members[np.minimum(chosen, len(members) - 1)]
        return tokens


def make_grammar() -> Grammar:
    """The language of the data set `markov`: `<eos>`, and five classes of ten words whose shares fall as 1/rank."""
    names = [[END], *([consonant + ending for ending in ENDINGS] for consonant in CONSONANTS)]
    uniform = np.random.Generator(np.random.Philox(stream(0, "grammar"))).random((len(names),) * 3)
    weights = (-np.log1p(-uniform)) ** SHARPNESS
    transitions = weights / weights.sum(2, keepdims=True)
    transitions = LEAST + (1 - LEAST * len(names)) * transitions
    return Grammar(
        words=tuple(word for members in names for word in members),
        transitions=transitions,
        classes=np.repeat(np.arange(len(names)), [len(members) for members in names]),
        shares=np.concatenate([_falling(len(members)) for members in names]),
    )


def _falling(count: int) -> Probabilities:
    shares = 1 / np.arange(1, count + 1)
    return np.asarray(shares / shares.sum())


def _entropies(table: Probabilities) -> Probabilities:
    """The entropy of each distribution along the last axis; 0 log 0 = 0."""
    logs = np.log(table, out=np.zeros_like(table), where=table > 0)
    return np.asarray(-(table * logs).sum(-1))
