"""Each identity: its outcome against a calculation made here, and wrong inputs that it must reject."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tiebreak.theory import conv_matrix, identities
from tiebreak.theory.claims import LEDGER, Outcome


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return identities.outcomes()


def number(outcome: Outcome, name: str) -> float:
    value = outcome.evidence[name]
    assert isinstance(value, (int, float))
    return value


def test_there_is_a_check_for_each_identity_of_the_ledger_and_it_answers_for_it(outcomes: dict[str, Outcome]) -> None:
    assert {entry.id for entry in LEDGER if entry.identity} == set(outcomes)
    assert all(outcome.claim == name for name, outcome in outcomes.items())
    assert all(outcome.sentence and outcome.evidence for outcome in outcomes.values())


def test_verdicts(outcomes: dict[str, Outcome]) -> None:
    fails = {name for name, outcome in outcomes.items() if outcome.verdict != "holds"}
    assert fails == {"cosine-semantic", "gcn-rows-normalised"}
    assert {outcomes[name].verdict for name in fails} == {"fails"}


def test_outcomes_are_frozen(outcomes: dict[str, Outcome]) -> None:
    with pytest.raises(FrozenInstanceError):
        outcomes["heads-equal"].verdict = "fails"  # type: ignore[misc]


def test_the_random_numbers_of_the_caller_are_left_alone() -> None:
    before, threads = torch.random.get_rng_state(), torch.get_num_threads()
    identities.outcomes()
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.get_num_threads() == threads


# conv-is-linear


def _transposed(weight: Tensor, image: tuple[int, int], stride: int, padding: int) -> Tensor:
    return conv_matrix.as_matrix(weight, image, stride, padding).to_dense().T  # the size that R3 states


def _turned(weight: Tensor, image: tuple[int, int], stride: int, padding: int) -> Tensor:
    return conv_matrix.as_matrix(weight.flip(-1, -2), image, stride, padding)  # the mathematician's convolution


def _stride_dropped(weight: Tensor, image: tuple[int, int], stride: int, padding: int) -> Tensor:
    return conv_matrix.as_matrix(weight, image, 1, padding)  # R3's other slip


@pytest.mark.parametrize("wrong", [_transposed, _turned, _stride_dropped])
def test_a_wrong_matrix_is_found_out(wrong: Callable[..., Tensor]) -> None:
    assert identities.conv_is_linear(wrong).verdict == "fails"


def test_the_matrix_is_compared_with_numbers_that_are_not_small(outcomes: dict[str, Outcome]) -> None:
    assert number(outcomes["conv-is-linear"], "largest_number") > 5
    assert number(outcomes["conv-is-linear"], "largest_difference") < 1e-12  # on some processors exactly 0
    assert number(outcomes["conv-is-linear"], "largest_additivity_error") < 1e-12


# feature-size


def test_sizes_by_hand() -> None:
    assert [identities.multisets(D, 3) for D in (1, 4, 16)] == [1 + D + D * (D + 1) // 2 for D in (1, 4, 16)]
    assert [identities.tuples(D, 3) for D in (1, 4, 16)] == [1 + D + D * D for D in (1, 4, 16)]
    assert identities.last_term(16, 3) == 256


@pytest.mark.parametrize(
    "sizes",
    [
        {"symmetric": identities.last_term},
        {"full": identities.last_term},
        {"symmetric": identities.tuples},
        {"symmetric": lambda D, K: math.comb(D + K, K)},
        {"rival": identities.multisets},
    ],
)
def test_a_wrong_size_is_found_out(sizes: dict[str, identities.Size]) -> None:
    assert identities.feature_size(**sizes).verdict == "fails"


def test_the_rival_has_its_counter_example(outcomes: dict[str, Outcome]) -> None:
    sentence = outcomes["feature-size"].sentence
    assert all(size in sentence for size in ("153", "273", "256"))
    assert number(outcomes["feature-size"], "rival_right") == 0


# perplexity-is-exp-ce


def _bits(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits, targets) / math.log(2)


def _summed(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits, targets, reduction="sum")


def _smoothed(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits, targets, label_smoothing=0.1)


@pytest.mark.parametrize("wrong", [_bits, _summed, _smoothed])
def test_another_cross_entropy_is_found_out(wrong: Callable[[Tensor, Tensor], Tensor]) -> None:
    assert identities.perplexity_is_exp_ce(wrong).verdict == "fails"


def test_ten_equal_chances_have_perplexity_ten(outcomes: dict[str, Outcome]) -> None:
    assert number(outcomes["perplexity-is-exp-ce"], "of_10_equal_chances") == pytest.approx(10)


# cosine-semantic


@pytest.mark.parametrize(("a", "b", "expected"), [("aab", "abb", 2 / 3), ("ab", "cd", 0.0), ("a", "aaaa", 0.5)])
def test_cosine_by_hand(a: Sequence[str], b: Sequence[str], expected: float) -> None:
    assert identities.cosine(a, b) == pytest.approx(expected)


def test_a_similarity_that_sees_order_is_not_refuted() -> None:
    def in_place(a: str, b: str) -> float:
        return sum(x == y for x, y in zip(a, b, strict=False)) / max(len(a), len(b))

    assert identities.cosine_semantic(in_place).verdict == "undecided"


# gcn-rows-normalised


def test_row_sums_on_the_path_by_hand(outcomes: dict[str, Outcome]) -> None:
    end, middle = 1 / 2 + 1 / math.sqrt(6), 1 / 3 + 2 / math.sqrt(6)
    shown = outcomes["gcn-rows-normalised"].evidence["row_sums_on_the_path"]
    assert shown == f"{end:.3f}, {middle:.3f}, {end:.3f}"


def test_exactly_the_graphs_of_regular_parts_have_rows_of_sum_one(outcomes: dict[str, Outcome]) -> None:
    evidence = outcomes["gcn-rows-normalised"].evidence
    # No edge 1, one edge 6, two apart 3, a triangle 4, a ring 3, all six edges 1.
    assert (evidence["with_rows_of_sum_one"], evidence["with_regular_parts"]) == (18, 18)
    assert evidence["the_same_graphs"] == "yes"


def test_row_normalisation_holds_and_none_fails() -> None:
    assert identities.gcn_rows_normalised("row").verdict == "holds"
    assert identities.gcn_rows_normalised("none").verdict == "fails"
