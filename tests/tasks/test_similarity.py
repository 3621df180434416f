from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.errors import TiebreakError
from tiebreak.tasks import similarity
from tiebreak.tasks.similarity import (
    cer,
    cosine,
    damerau_levenshtein,
    error_rates,
    exact_match,
    jaccard,
    wer,
)

Similarity = Callable[[Sequence[Hashable], Sequence[Hashable]], float]
SIMILARITIES: list[Similarity] = [jaccard, cosine, damerau_levenshtein]
words = st.text("abé ", max_size=8)
tokens = st.lists(st.sampled_from([-1, -2, 0, "a", "ab", None, (1,)]), max_size=7)
sentences = st.lists(st.tuples(words, words), min_size=1, max_size=6)


def distance(first: Sequence[Hashable], second: Sequence[Hashable], swaps: bool) -> int:
    """The table of all prefixes, entry by entry."""
    table = {(row, 0): row for row in range(len(first) + 1)} | {
        (0, column): column for column in range(len(second) + 1)
    }
    for row in range(1, len(first) + 1):
        for column in range(1, len(second) + 1):
            same = first[row - 1] == second[column - 1]
            best = min(
                table[row - 1, column] + 1, table[row, column - 1] + 1, table[row - 1, column - 1] + (0 if same else 1)
            )
            if swaps and row > 1 and column > 1:
                crossed = first[row - 1] == second[column - 2] and first[row - 2] == second[column - 1]
                best = min(best, table[row - 2, column - 2] + 1) if crossed else best
            table[row, column] = best
    return table[len(first), len(second)]


def edits(reference: str, prediction: str) -> float:
    return float(error_rates([reference], [prediction])[0]) * max(len(reference), 1)


@given(sentences)
def test_error_rates_are_edits_by_length_one_by_one(pairs: list[tuple[str, str]]) -> None:
    references, predictions = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    expected = [distance(*pair, swaps=False) / max(len(pair[0]), 1) for pair in pairs]
    rates = error_rates(references, predictions)
    assert rates.dtype == np.float64
    assert rates.tolist() == expected


@given(sentences)
def test_corpus_rates_divide_totals(pairs: list[tuple[str, str]]) -> None:
    references, predictions = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    characters = sum(distance(*pair, swaps=False) for pair in pairs)
    assert cer(references, predictions) == characters / max(sum(map(len, references)), 1)
    words = [(first.split(), second.split()) for first, second in pairs]
    total = sum(distance(*pair, swaps=False) for pair in words)
    assert wer(references, predictions) == total / max(sum(len(first) for first, _ in words), 1)
    assert exact_match(references, predictions) == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))


@given(words, words, words)
def test_the_edit_distance_is_a_metric(first: str, second: str, third: str) -> None:
    assert edits(first, second) == pytest.approx(edits(second, first))
    assert (edits(first, second) == 0) == (first == second)
    assert edits(first, third) <= edits(first, second) + edits(second, third) + 1e-9


@given(tokens, tokens)
def test_optimal_string_alignment_is_the_table_of_prefixes(first: list[Hashable], second: list[Hashable]) -> None:
    longest = max(len(first), len(second), 1)
    assert damerau_levenshtein(first, second) == pytest.approx(1 - distance(first, second, swaps=True) / longest)


@given(tokens, tokens)
def test_jaccard_and_cosine_are_their_formulas(first: list[Hashable], second: list[Hashable]) -> None:
    kinds = set(first) | set(second)
    shared = sum(min(first.count(kind), second.count(kind)) for kind in kinds)
    union = sum(max(first.count(kind), second.count(kind)) for kind in kinds)
    assert jaccard(first, second) == (shared / union if union else 1.0)
    if first and second:
        assert cosine(first, second) == pytest.approx(shared / math.sqrt(len(first) * len(second)))


@pytest.mark.parametrize("similarity", SIMILARITIES)
@given(first=tokens, second=tokens)
def test_similarities_are_symmetric_bounded_and_one_for_equals(
    similarity: Similarity, first: list[Hashable], second: list[Hashable]
) -> None:
    assert 0 <= similarity(first, second) <= 1
    assert similarity(first, second) == similarity(second, first)
    assert similarity(first, first) == 1.0


@given(st.data(), tokens, tokens)
def test_jaccard_and_cosine_ignore_order(data: st.DataObject, first: list[Hashable], second: list[Hashable]) -> None:
    shuffled = data.draw(st.permutations(first))
    assert jaccard(shuffled, second) == jaccard(first, second)
    assert cosine(shuffled, second) == cosine(first, second)
    assert cosine(shuffled, first) == jaccard(shuffled, first) == 1.0


def test_a_swap_is_one_edit_for_osa_and_no_part_is_edited_twice() -> None:
    assert damerau_levenshtein("ab", "ba") == 0.5
    assert error_rates(["ab"], ["ba"]).tolist() == [1.0]
    assert damerau_levenshtein("ca", "abc") == 0.0  # 3 of 3; the unrestricted distance would be 2


def test_the_error_rate_counts_sentences_and_cer_characters() -> None:
    references, predictions = ["ab", "abcdefgh"], ["xy", "abcdefgh"]
    assert error_rates(references, predictions).mean() == 0.5
    assert cer(references, predictions) == 0.2
    assert exact_match(references, predictions) == 0.5


def test_the_error_rate_can_exceed_one() -> None:
    assert error_rates(["no"], ["no no no"]).tolist() == [3.0]
    assert wer(["no"], ["oh no no no"]) == 3.0


def test_nothing_is_divided_by_zero() -> None:
    assert error_rates(["", "", "a"], ["", "abc", ""]).tolist() == [0.0, 3.0, 1.0]
    assert cer([""], ["ab"]) == 2.0
    assert wer([" "], ["ab cd"]) == 2.0
    for measure in SIMILARITIES:
        assert measure([], []) == 1.0
        assert measure([], ["a"]) == measure(["a"], []) == 0.0


def test_tokens_with_equal_hashes_are_told_apart() -> None:
    assert hash(-1) == hash(-2)
    assert damerau_levenshtein([-1], [-2]) == 0.0


def test_the_the_the_scores_well_where_order_is_ignored() -> None:
    reference = "the quick brown fox jumps over the lazy dog in the heat"
    babble = ("the " * 20)[: len(reference)]
    assert jaccard(reference, babble) > 0.2
    assert cosine(reference, babble) > 0.3
    assert cosine(reference, reference[::-1]) == 1.0 > damerau_levenshtein(reference, reference[::-1])


@pytest.mark.parametrize("name", ["error_rates", "cer", "wer", "exact_match"])
def test_lists_of_different_lengths_are_refused(name: str) -> None:
    score = getattr(similarity, name)
    with pytest.raises(TiebreakError, match="2 references, but 1 predictions"):
        score(["a", "b"], ["a"])
    with pytest.raises(TiebreakError, match="no sentences to score"):
        score([], [])


@pytest.mark.parametrize("name", ["error_rates", "cer", "wer", "exact_match"])
@pytest.mark.parametrize(
    ("references", "predictions", "blamed"),
    [
        ("the cat sat", "the mat sat", "references are one string, 'the cat sat'"),
        (["the cat sat"], "the mat sat", "predictions are one string"),
        (np.str_("ab"), ["a", "b"], "references are one string"),
        (b"ab", b"ac", "references are one string"),
        ("", "", "references are one string, ''"),
    ],
)
def test_one_string_is_no_list_of_sentences(name: str, references: object, predictions: object, blamed: str) -> None:
    with pytest.raises(TiebreakError, match=blamed) as caught:
        getattr(similarity, name)(references, predictions)
    assert "give lists of strings" in str(caught.value)


def test_arrays_are_sequences_too() -> None:
    references, predictions = ["ab c", "c", ""], ["ac c", "d", ""]
    for score in (cer, wer, exact_match):
        expected = score(references, predictions)
        assert score(np.array(references), np.array(predictions)) == expected
        assert score(np.array(references, object), tuple(predictions)) == expected
        with pytest.raises(TiebreakError, match="no sentences to score"):
            score(np.array([], str), np.array([], str))
    for measure in (jaccard, cosine, damerau_levenshtein):
        assert measure(np.array([1, 2]), np.array([1, 2])) == 1.0
        assert measure(np.array([1, 2, 2]), [2, 1]) == measure([1, 2, 2], [2, 1])
        assert measure(np.array([], int), np.array([3])) == 0.0
        assert measure(np.array([], int), []) == 1.0


def test_metrics_need_no_torch() -> None:
    code = "import sys, tiebreak.tasks.similarity; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
