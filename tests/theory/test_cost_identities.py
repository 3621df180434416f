"""The identities about costs: each outcome against a calculation made here, and wrong inputs that it must reject."""

from __future__ import annotations

import pytest

from tiebreak.cost import measure
from tiebreak.layers.heads import MultiHead
from tiebreak.theory import cost_identities
from tiebreak.theory.claims import Outcome


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return {
        "cnn-fewer-parameters": cost_identities.cnn_fewer_parameters(),
        "softmax-quadratic": cost_identities.softmax_quadratic(),
        "taylor-linear": cost_identities.taylor_linear(),
        "heads-equal": cost_identities.heads_equal(),
    }


def number(outcome: Outcome, name: str) -> float:
    value = outcome.evidence[name]
    assert isinstance(value, (int, float))
    return value


# cnn-fewer-parameters


@pytest.mark.parametrize(("H", "W"), [(12, 12), (28, 28), (21, 34), (48, 32)])
def test_parameters_of_both_nets_by_hand(H: int, W: int, outcomes: dict[str, Outcome]) -> None:
    hidden = ((H - 2) // 2) * ((W - 2) // 2)
    expected = f"{9 + 3 * hidden:,} against {(H * W + 3) * hidden:,}"
    assert outcomes["cnn-fewer-parameters"].evidence[f"at {H}x{W}"] == expected


def test_the_exponents_of_both_nets(outcomes: dict[str, Outcome]) -> None:
    assert number(outcomes["cnn-fewer-parameters"], "conv-net_exponent_in_HW") == pytest.approx(1, abs=0.01)
    assert number(outcomes["cnn-fewer-parameters"], "dense-net_exponent_in_HW") == pytest.approx(2, abs=0.01)


def test_nets_the_wrong_way_round_are_found_out() -> None:
    assert cost_identities.cnn_fewer_parameters("dense-net", "conv-net").verdict == "fails"
    assert cost_identities.cnn_fewer_parameters("conv-net", "conv-net").verdict == "fails"


# softmax-quadratic and taylor-linear


@pytest.mark.parametrize(("claim", "exponents"), [("softmax-quadratic", {"L": 2, "D": 1}),
                                                  ("taylor-linear", {"L": 1, "V": 1, "M": 1})])  # fmt: skip
def test_exponents_by_formula_and_by_counting(
    claim: str, exponents: dict[str, int], outcomes: dict[str, Outcome]
) -> None:
    for variable, exponent in exponents.items():
        for how in ("formula", "counted"):
            assert number(outcomes[claim], f"{how}_exponent_in_{variable}") == pytest.approx(exponent, abs=1e-9)


@pytest.mark.parametrize("part", ["taylor", "linear", "lstm"])
def test_what_is_not_quadratic_is_found_out(part: str) -> None:
    assert cost_identities.softmax_quadratic(part).verdict == "fails"


@pytest.mark.parametrize("part", ["attention", "attention-naive", "lstm"])
def test_what_is_not_linear_is_found_out(part: str) -> None:
    assert cost_identities.taylor_linear(part).verdict == "fails"


def test_a_count_that_is_not_the_formulas_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    count = measure.count
    monkeypatch.setattr(measure, "count", lambda call: measure.Count(flops=(count(call).flops or 0) + 2))
    assert cost_identities.softmax_quadratic().verdict == "fails"


# heads-equal


@pytest.mark.parametrize("h", [1, 2, 4, 8])
def test_costs_of_heads_by_hand(h: int, outcomes: dict[str, Outcome]) -> None:
    n, d = 48, 64
    expected = (
        f"{3 * d * d:,} parameters, {3 * n * d * d + 2 * n * n * d:,} multiply-adds, {h * n * n:,} softmax weights"
    )
    assert outcomes["heads-equal"].evidence[f"h={h}"] == expected


def test_the_clock_is_evidence_only(outcomes: dict[str, Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    assert number(outcomes["heads-equal"], "time_of_8_heads_over_1") > 0
    for ratio in (0.5, 2.0):
        monkeypatch.setattr(cost_identities, "_slower", lambda *given, ratio=ratio: ratio)
        found = cost_identities.heads_equal()
        assert found.verdict == "holds"
        assert f"{ratio:.2f}" in str(found.evidence["left_open"])


def test_heads_that_differ_are_found_out() -> None:
    def projected(d: int, h: int) -> MultiHead:
        return MultiHead(d, h, output_projection=h > 1, bias="none")

    found = cost_identities.heads_equal(projected)
    assert found.verdict == "fails"
    assert found.sentence.startswith("different")
