"""How near a predicted sentence is to the right one.

| name                | formula                                                        | range        | better |
|---------------------|----------------------------------------------------------------|--------------|--------|
| error_rates         | Levenshtein(r, p) / |r| of each sentence, in characters        | 0 and up     | less   |
| cer                 | all edits / all characters of the references                   | 0 and up     | less   |
| wer                 | the same in words                                              | 0 and up     | less   |
| exact_match         | share of predictions without an error                          | 0 to 1       | more   |
| jaccard             | Σ min(a_v, b_v) / Σ max(a_v, b_v)                              | 0 to 1       | more   |
| cosine              | Σ min(a_v, b_v) / √(|a| |b|)                                   | 0 to 1       | more   |
| damerau_levenshtein | 1 - OSA(a, b) / max(|a|, |b|)                                  | 0 to 1       | more   |

r reference, p prediction; a_v is how often token v is in a. Levenshtein counts insertions, deletions and substitutions;
OSA (optimal string alignment) also swaps of neighbours, and edits no part twice. Jaccard and cosine ignore all order.
`cosine` is what the reports call so: its numerator is not a dot product. Characters are code points.
Nothing is divided by zero: the length of an empty reference counts as 1, so its error is the number of characters that
were predicted, and two empty sequences are alike (1.0).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import OSA, Levenshtein

from tiebreak.errors import TiebreakError

Tokens = Sequence[Hashable] | NDArray[Any]
Sentences = Sequence[str] | NDArray[np.str_]


def error_rates(references: Sentences, predictions: Sentences) -> NDArray[np.float64]:
    """Of each sentence: character edits from the prediction to the reference / characters of the reference."""
    _check(references, predictions)
    return _edits(references, predictions) / np.maximum(_lengths(references), 1)


def cer(references: Sentences, predictions: Sentences) -> float:
    """Character error rate of the whole: long sentences count more than in the mean of `error_rates`."""
    return _corpus_rate(references, predictions)


def wer(references: Sentences, predictions: Sentences) -> float:
    """Word error rate of the whole; words are what is between white space.

    >>> wer(["the cat sat"], ["the mat  sat"])
    0.3333333333333333
    """
    _check_lists(references, predictions)  # before they are split: the letters of a string would be its words
    return _corpus_rate([text.split() for text in references], [text.split() for text in predictions])


def exact_match(references: Sentences, predictions: Sentences) -> float:
    """The share of sentences that were predicted without any error."""
    _check(references, predictions)
    return float(np.mean([first == second for first, second in zip(references, predictions, strict=True)]))


def jaccard(first: Tokens, second: Tokens) -> float:
    """Σ min / Σ max of how often each token occurs."""
    counts, others = Counter(first), Counter(second)
    union = (counts | others).total()
    return (counts & others).total() / union if union else 1.0


def cosine(first: Tokens, second: Tokens) -> float:
    """Σ min of how often each token occurs / the geometric mean of the lengths."""
    if min(len(first), len(second)) == 0:
        return float(len(first) == len(second))
    return (Counter(first) & Counter(second)).total() / math.sqrt(len(first) * len(second))


def damerau_levenshtein(first: Tokens, second: Tokens) -> float:
    """1 - optimal string alignment distance / the greater length.

    >>> damerau_levenshtein("form", "from")
    0.75
    """
    longest = max(len(first), len(second))
    return 1 - OSA.distance(*_numbered(first, second)) / longest if longest else 1.0


def _corpus_rate(references: Sequence[Tokens] | Sentences, predictions: Sequence[Tokens] | Sentences) -> float:
    _check(references, predictions)
    return float(_edits(references, predictions).sum() / max(int(_lengths(references).sum()), 1))


def _edits(references: Sequence[Tokens] | Sentences, predictions: Sequence[Tokens] | Sentences) -> NDArray[np.int64]:
    pairs = zip(references, predictions, strict=True)
    return np.array([Levenshtein.distance(*_numbered(first, second)) for first, second in pairs], dtype=np.int64)


def _lengths(sequences: Sequence[Tokens] | Sentences) -> NDArray[np.int64]:
    return np.array([len(sequence) for sequence in sequences], dtype=np.int64)


def _numbered(first: Tokens, second: Tokens) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    """Tokens as small numbers, since rapidfuzz compares hashes, and hash(-1) == hash(-2); text needs no such care."""
    if isinstance(first, str) and isinstance(second, str):
        return first, second
    numbers: dict[Hashable, int] = {}
    for token in (*first, *second):
        numbers.setdefault(token, len(numbers))
    return [numbers[token] for token in first], [numbers[token] for token in second]


def _check(references: Sequence[Tokens] | Sentences, predictions: Sequence[Tokens] | Sentences) -> None:
    _check_lists(references, predictions)
    if len(references) != len(predictions):
        raise TiebreakError(f"{len(references)} references, but {len(predictions)} predictions; give one for each")
    if len(references) == 0:
        raise TiebreakError("no sentences to score: the lists of references and predictions are empty")


def _check_lists(references: object, predictions: object) -> None:
    """Raise where one string is given: it is a sequence of strings too, and each letter would count as a sentence."""
    for name, given in (("references", references), ("predictions", predictions)):
        if isinstance(given, str | bytes):
            raise TiebreakError(f"the {name} are one string, {given[:40]!r}; give lists of strings, one per sentence")
