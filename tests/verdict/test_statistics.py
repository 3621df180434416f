from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from support import REPOSITORY
from tiebreak.errors import TiebreakError
from tiebreak.exchange.score_sources import read_scores
from tiebreak.verdict.sequential import Looks
from tiebreak.verdict.sides import usable_scores
from tiebreak.verdict.skewness import is_lopsided
from tiebreak.verdict.statistics import (
    LARGEST,
    MOST_SEEDS,
    Compared,
    Estimate,
    Goal,
    Sample,
    chance_a_better,
    compare,
    equivalence_power,
    estimate,
    example_interval,
    holm,
    least_seeds,
    power,
    prediction_interval,
    t_test_p,
    usable,
)

Array = NDArray[np.float64]

few = settings(max_examples=60, deadline=None, derandomize=True)
sixteenths = st.integers(-4096, 4096).map(lambda number: number / 16)  # sums and differences of these are exact
probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=12)
MARGIN = 1.0


@st.composite
def families(draw: st.DrawFn) -> list[Sample]:
    """One to four comparisons of 2 to 12 seeds; shifts make some of them clear and others not."""
    samples = []
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.integers(2, 12))
        a, b = (np.array(draw(st.lists(sixteenths, min_size=n, max_size=n))) for _ in "ab")
        samples.append(
            Sample(a=a + draw(st.sampled_from([0, 64, 512])), b=b, goal=draw(st.sampled_from(["max", "min"])))
        )
    return samples


def normal(seed: int, n: int, mean: float = 0.0, sd: float = 1.0) -> Array:
    return np.random.default_rng(seed).normal(mean, sd, n)


def arrays(sample: Sample) -> tuple[Array, Array]:
    return np.asarray(sample.a, dtype=np.float64), np.asarray(sample.b, dtype=np.float64)


def differing(differences: Array | list[float], goal: Goal = "max") -> Sample:
    return Sample(a=np.asarray(differences), b=np.zeros(len(differences)), goal=goal)


def with_t(t: float, n: int) -> Array:
    """n differences with sd 1 and exactly this t statistic."""
    values = normal(3, n)
    return np.asarray((values - values.mean()) / values.std(ddof=1) + t / math.sqrt(n), dtype=np.float64)


def close(x: float | None, y: float | Array | None) -> bool:
    assert x is not None
    assert y is not None
    return math.isclose(x, float(y), rel_tol=1e-9, abs_tol=1e-9)


# --- one arm -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 5, 30])
def test_estimate_is_the_t_interval_of_scipy(n: int) -> None:
    scores = normal(n, n, mean=0.9, sd=0.01)
    low, high = scipy.stats.t.interval(0.95, n - 1, scores.mean(), scipy.stats.sem(scores))
    found = estimate(scores)
    assert close(found.mean, scores.mean())
    assert close(found.sd, scores.std(ddof=1))
    assert close(found.low, low)
    assert close(found.high, high)
    assert found.n == n


def test_estimate_of_too_few_scores_says_only_what_is_known() -> None:
    assert estimate([]) == Estimate(mean=None, sd=None, low=None, high=None, n=0)
    assert estimate([0.5]) == Estimate(mean=0.5, sd=None, low=None, high=None, n=1)


def test_equal_scores_have_no_spread_in_spite_of_rounding() -> None:
    assert np.full(3, 0.1).mean() != 0.1
    assert estimate([0.1] * 3) == Estimate(mean=0.1, sd=0.0, low=0.1, high=0.1, n=3)
    assert prediction_interval([0.1] * 3) == (0.1, 0.1)


def test_prediction_interval_is_wider_by_sqrt_n_plus_1() -> None:
    scores = normal(4, 8)
    found, fresh = estimate(scores, confidence=0.9), prediction_interval(scores, confidence=0.9)
    assert fresh is not None
    assert found.low is not None
    assert found.high is not None
    assert close((fresh[1] - fresh[0]) / (found.high - found.low), 3.0)
    assert prediction_interval([1.0]) is None


# --- tests and adjustment -----------------------------------------------------------------------------------------


@given(families())
@few
def test_p_is_that_of_scipy(samples: list[Sample]) -> None:
    for sample, result in zip(samples, compare(samples, margin=MARGIN), strict=True):
        a, b = arrays(sample)
        if np.ptp(a - b) > 0:
            assert close(result.p, scipy.stats.ttest_rel(a, b).pvalue)
            assert close(t_test_p(a - b), scipy.stats.ttest_1samp(a - b, 0).pvalue)
            low, high = scipy.stats.ttest_rel(a, b).confidence_interval(0.9)
            if not is_lopsided(a - b):
                assert close(result.same_low, low)
                assert close(result.same_high, high)


def test_holm_by_hand() -> None:
    # sorted .005 .01 .03 .04, times 4 3 2 1: .02 .03 .06 .04, and the last may not fall below .06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]).tolist() == [1.0, 1.0]
    assert holm([0.03]).tolist() == [0.03]
    assert holm([]).tolist() == []


@given(probabilities)
@few
def test_holm_keeps_the_order_and_only_raises(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert np.all(adjusted >= np.array(p_values))
    assert np.all(adjusted <= 1)
    assert np.all(np.diff(adjusted[np.argsort(p_values)]) >= 0)
    assert np.all(adjusted <= np.minimum(1, np.array(p_values) * len(p_values)))  # never worse than Bonferroni


# --- verdicts -----------------------------------------------------------------------------------------------------


@given(families())
@few
def test_swapping_a_and_b_mirrors_everything(samples: list[Sample]) -> None:
    swapped = [Sample(a=sample.b, b=sample.a, goal=sample.goal) for sample in samples]
    mirror = {"a": "b", "b": "a", "same": "same", "undecided": "undecided"}
    for x, y in zip(compare(samples, margin=MARGIN), compare(swapped, margin=MARGIN), strict=True):
        assert x.low is not None
        assert x.high is not None
        assert (y.difference, y.low, y.high) == (-(x.difference or 0), -x.high, -x.low)
        assert (y.p, y.p_adjusted, y.p_sign_flip) == (x.p, x.p_adjusted, x.p_sign_flip)
        assert close((x.p_a_better or 0) + (y.p_a_better or 0), 1)
        assert y.verdict == mirror[x.verdict]
        assert (y.seeds_needed, y.flags) == (x.seeds_needed, x.flags)


@given(families(), sixteenths, st.sampled_from([0.125, 1.0, 8.0]))
@few
def test_shift_and_scale_change_only_the_unit(samples: list[Sample], shift: float, scale: float) -> None:
    moved = [
        Sample(a=(a + shift) * scale, b=(b + shift) * scale, goal=sample.goal)
        for sample in samples
        for a, b in [arrays(sample)]
    ]
    for x, y in zip(compare(samples, margin=MARGIN), compare(moved, margin=MARGIN * scale), strict=True):
        assert (y.p, y.p_adjusted, y.p_sign_flip, y.p_a_better) == (x.p, x.p_adjusted, x.p_sign_flip, x.p_a_better)
        assert (y.verdict, y.seeds_needed, y.flags) == (x.verdict, x.seeds_needed, x.flags)
        assert close(y.difference, (x.difference or 0) * scale)
        assert close(y.high, (x.high or 0) * scale)


@given(families())
@few
def test_the_interval_excludes_zero_exactly_when_holm_rejects(samples: list[Sample]) -> None:
    for result in compare(samples, margin=MARGIN):
        assert result.difference is not None
        assert result.low is not None
        assert result.high is not None
        assert result.p_adjusted is not None
        assert result.low <= result.difference <= result.high
        excluded = result.difference != 0 and (result.low >= 0 or result.high <= 0)  # an end of exactly 0 is open
        assert excluded == (result.p_adjusted <= 0.05)


@given(families())
@few
def test_the_verdict_follows_the_written_order(samples: list[Sample]) -> None:
    for sample, result in zip(samples, compare(samples, margin=MARGIN), strict=True):
        assert result.same_low is not None
        assert result.same_high is not None
        assert result.p_adjusted is not None
        if result.seeds < least_seeds(len(samples)):
            expected = "undecided"
        elif max(-result.same_low, result.same_high) < MARGIN:
            expected = "same"
        elif result.p_adjusted <= 0.05:
            expected = "a" if ((result.difference or 0) > 0) == (sample.goal == "max") else "b"
        else:
            expected = "undecided"
        assert result.verdict == expected
        assert (result.seeds_needed is None) or expected == "undecided"


@pytest.mark.parametrize("rate", [0.04, 0.03])
def test_where_only_holm_rejects_the_interval_is_cut_at_zero(rate: float) -> None:
    n = 10
    t = float(
        scipy.stats.t.isf(rate / 2, n - 1)
    )  # p between .05 / 2 and .05: Bonferroni does not reject, Holm's second step does
    clear = differing(with_t(20.0, n))
    for sign in (1, -1):
        result = compare([clear, differing(sign * with_t(t, n))], margin=0.01)[1]
        assert close(result.p_adjusted, rate)
        assert (result.low if sign > 0 else result.high) == 0.0
        assert result.verdict == ("a" if sign > 0 else "b")
        alone = compare([differing(np.zeros(n)), differing(sign * with_t(t, n))], margin=0.01)[1]
        assert alone.verdict == "undecided"
        assert (alone.low or 0) * (alone.high or 0) < 0


def test_first_step_intervals_are_bonferroni() -> None:
    samples = [differing(with_t(t, 9)) for t in (8.0, 1.0, 0.5)]
    for sample, result in zip(samples, compare(samples, margin=0.01), strict=True):
        low, high = scipy.stats.ttest_1samp(arrays(sample)[0], 0).confidence_interval(1 - 0.05 / 3)
        assert close(result.low, low)
        assert close(result.high, high)


@given(st.lists(sixteenths, min_size=6, max_size=20))
@few
def test_identical_arms_are_the_same(scores: list[float]) -> None:
    result = compare([Sample(a=scores, b=scores)], margin=1e-12)[0]
    assert (result.verdict, result.p, result.p_sign_flip) == ("same", 1.0, 1.0)
    assert (result.difference, result.low, result.high, result.p_a_better) == (0.0, 0.0, 0.0, 0.5)


def test_a_constant_difference_decides_without_nan() -> None:
    result = compare([Sample(a=[0.9] * 6, b=[0.6] * 6)], margin=0.1)[0]
    gap = 0.9 - 0.6
    assert (result.verdict, result.p, result.p_adjusted) == ("a", 0.0, 0.0)
    assert (result.difference, result.low, result.high, result.same_low, result.same_high) == (gap,) * 5
    assert result.p_sign_flip == 1 / 32
    (flag,) = result.flags
    assert "no spread" in flag


def test_same_comes_before_better_and_is_flagged() -> None:
    tiny = differing(with_t(30.0, 10) * 1e-3)
    assert compare([tiny], margin=0.005)[0].verdict == "a"
    result = compare([tiny], margin=0.02)[0]
    assert result.verdict == "same"
    (flag,) = result.flags
    assert "smaller than the margin" in flag


def test_a_difference_of_exactly_the_margin_is_not_the_same() -> None:
    assert compare([differing([0.5] * 6)], margin=0.5)[0].verdict == "a"
    assert compare([differing([0.5] * 6)], margin=0.50001)[0].verdict == "same"


def test_less_is_better_when_the_goal_is_min() -> None:
    better = with_t(-9.0, 8)
    assert compare([differing(better, "min")], margin=0.01)[0].verdict == "a"
    assert compare([differing(better, "max")], margin=0.01)[0].verdict == "b"
    assert (compare([differing(better, "min")], margin=0.01)[0].difference or 0) < 0  # the unit is the metric's


@pytest.mark.parametrize(("comparisons", "least"), [(1, 6), (2, 7), (3, 7), (4, 8), (6, 8), (7, 9), (12, 9), (13, 10)])
def test_least_seeds(comparisons: int, least: int) -> None:
    assert least_seeds(comparisons) == least
    clear = [differing(with_t(50.0, least)) for _ in range(comparisons)]
    assert all(result.verdict == "a" and not result.flags for result in compare(clear, margin=1e-3))
    fewer = [differing(with_t(50.0, least - 1)) for _ in range(comparisons)]
    for result in compare(fewer, margin=1e-3):
        assert (result.verdict, result.seeds_needed) == ("undecided", 1)
        (flag,) = result.flags
        assert re.search(rf"\b{least - 1} seeds.*\b{least} needed.*\b{comparisons}\b", flag)


def test_least_seeds_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        least_seeds(0)
    with pytest.raises(ValueError, match="alpha"):
        least_seeds(1, alpha=0.0)


@pytest.mark.parametrize("n", [0, 1])
def test_one_seed_is_never_a_verdict(n: int) -> None:
    result = compare([Sample(a=[2.0][:n], b=[1.0][:n])], margin=0.1)[0]
    (flag,) = result.flags
    assert f"{n} seed" in flag
    one = 1.0 if n else None
    assert result == Compared(difference=one, p_a_better=one, seeds=n, seeds_needed=6 - n, flags=(flag,))


def test_an_empty_sample_still_counts_as_a_comparison() -> None:
    clear = differing(with_t(3.2, 8))
    alone, beside = compare([clear], margin=0.01)[0], compare([clear, differing([])], margin=0.01)[0]
    assert close(beside.p_adjusted, 2 * (alone.p_adjusted or 0))


def test_disagreement_of_the_two_tests_is_flagged() -> None:
    one_way = compare([differing([1.0, 1.0, 1.1, 1.2, 0.9, 9.0])], margin=0.01)[0]  # an outlier blows up the sd
    assert (one_way.p or 0) > 0.05 >= (one_way.p_sign_flip or 1)
    (flag,) = (each for each in one_way.flags if "lopsided" not in each)
    assert "only the sign-flip test" in flag
    assert one_way.verdict == "undecided"
    mixed = differing([-0.1, 0.9, 0.3, 1.2, 0.6, 1.05])
    result = compare([mixed], margin=0.01)[0]
    assert (result.p_sign_flip or 0) > 0.05 >= (result.p or 1)
    (flag,) = (each for each in result.flags if "lopsided" not in each)
    assert "only the t-test" in flag
    assert result.verdict == "a"


def test_an_interaction_is_a_difference_of_differences() -> None:
    a, b, c, d = (normal(seed, 9, mean) for seed, mean in enumerate((3.0, 1.0, 1.0, 1.0)))
    result = compare([Sample(a=a - b, b=c - d)], margin=0.1)[0]
    assert close(result.p, scipy.stats.ttest_1samp(a - b - c + d, 0).pvalue)


def test_samples_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ValueError, match="each of the same seeds"):
        compare([Sample(a=[1.0, 2.0], b=[1.0])], margin=0.1)
    with pytest.raises(ValueError, match="leave diverged runs out"):
        compare([Sample(a=[1.0, math.nan], b=[1.0, 2.0])], margin=0.1)
    with pytest.raises(ValueError, match="margin"):
        compare([], margin=0.0)
    assert compare([], margin=0.1) == []


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e99])
def test_sizes_at_the_edge_of_floats_give_numbers(size: float) -> None:
    result = compare([differing(with_t(1.0, 8) * size)], margin=size)[0]
    assert close(result.p, compare([differing(with_t(1.0, 8))], margin=1.0)[0].p)


# --- how likely, how many -----------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.lists(st.integers(0, 5), min_size=1, max_size=8))
@few
def test_chance_a_better_counts_all_pairs(a: list[int], b: list[int]) -> None:
    wins = sum((x > y) + (x == y) / 2 for x in a for y in b) / (len(a) * len(b))
    assert close(chance_a_better(a, b), wins)
    assert close(chance_a_better(a, b, "min"), 1 - wins)
    assert chance_a_better(a, []) is None


@given(families(), st.sampled_from([0.25, 4.0, 64.0]))
@few
def test_seeds_needed_is_the_smallest_that_will_do(samples: list[Sample], margin: float) -> None:
    level = 0.05 / len(samples)
    for sample, result in zip(samples, compare(samples, margin=margin), strict=True):
        a, b = arrays(sample)
        mean, sd = float((a - b).mean()), float((a - b).std(ddof=1))

        def reached(n: int, mean: float = mean, sd: float = sd) -> float:
            return max(power(mean, sd, n, level), equivalence_power(mean, sd, n, margin))

        if result.seeds_needed is None:
            assert result.verdict != "undecided" or reached(MOST_SEEDS) < 0.8
        else:
            total = result.seeds + result.seeds_needed
            assert result.seeds_needed >= 1
            assert total >= least_seeds(len(samples))
            assert reached(total) >= 0.8
            assert total - 1 < max(least_seeds(len(samples)), result.seeds + 1) or reached(total - 1) < 0.8


def test_no_number_of_seeds_settles_a_hopeless_question() -> None:
    result = compare([differing(with_t(0.0, 10) + 1e-9)], margin=1e-4)[0]
    assert (result.verdict, result.seeds_needed) == ("undecided", None)


# --- the other source of variance ---------------------------------------------------------------------------------


def test_example_interval_is_over_examples() -> None:
    stream = np.random.default_rng(7)
    a, b = (stream.random((runs, 400)) < rate for runs, rate in ((6, 0.9), (4, 0.8)))
    each = a.mean(axis=0) - b.mean(axis=0)
    low, high = scipy.stats.norm.interval(0.95, each.mean(), scipy.stats.sem(each))
    found = example_interval(a, b)
    assert found is not None
    assert close(found[0], low)
    assert close(found[1], high)
    assert example_interval(a[:, :1], b[:, :1]) is None


def test_example_interval_needs_the_same_examples() -> None:
    with pytest.raises(ValueError, match=r"\[runs, examples\]"):
        example_interval(np.zeros((3, 10)), np.zeros((3, 9)))
    with pytest.raises(ValueError, match=r"\[runs, examples\]"):
        example_interval(np.zeros(10), np.zeros(10))


def test_importing_is_light() -> None:
    heavy = "{'scipy.stats', 'torch', 'pydantic', 'matplotlib'}"
    code = (
        f"import sys, tiebreak.verdict.statistics, tiebreak.verdict.scores; print(sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_example_of_the_documentation_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    page = (REPOSITORY / "docs" / "statistics.md").read_text("utf-8")
    code, shown = (page.split(f"```{kind}\n")[1].split("```")[0] for kind in ("python", "text"))
    exec(compile(code, "docs/statistics.md", "exec"), {})
    assert capsys.readouterr().out == shown


def test_the_tables_of_the_documentation_are_true() -> None:
    page = (REPOSITORY / "docs" / "statistics.md").read_text("utf-8")
    effects = (1.0, 0.75, 0.5, 0.25)

    def row(name: str, chance: Callable[[float, int], float]) -> str:
        totals = (next(n for n in range(2, 500) if chance(effect, n) >= 0.8) for effect in effects)
        return f"| {name} | {' | '.join(map(str, totals))} |"

    for m, name in ((1, "1 comparison"), (3, "3 comparisons"), (6, "6 comparisons")):
        assert row(name, lambda effect, n, m=m: power(effect, 1.0, n, 0.05 / m)) in page  # type: ignore[misc]
    name = "`same`, when the truth is 0 and the margin is that"
    assert row(name, lambda effect, n: equivalence_power(0.0, 1.0, n, effect)) in page
    assert "| comparisons in the study | 1 | 2–3 | 4–6 | 7–12 | 13–25 |" in page
    assert f"| least seeds | {' | '.join(str(least_seeds(m)) for m in (1, 3, 6, 12, 25))} |" in page
    assert [least_seeds(m) for m in (2, 4, 7, 13)] == [least_seeds(m) for m in (3, 6, 12, 25)]


@pytest.mark.parametrize("n", [6, 9, 15])
def test_interval_and_p_agree_at_the_very_boundary(n: int) -> None:
    critical = float(scipy.stats.t.isf(0.025, n - 1))
    for step in range(-40, 41):
        result = compare([differing(with_t(critical * (1 + step * 1e-16), n))], margin=1e-6)[0]
        assert result.low is not None
        assert (result.low >= 0) == ((result.p_adjusted or 0) <= 0.05)


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (0.0, True),
        (LARGEST, True),
        (-LARGEST, True),
        (math.nextafter(LARGEST, math.inf), False),
        (math.inf, False),
        (-math.inf, False),
        (math.nan, False),
    ],
)
def test_one_definition_of_a_usable_score(score: float, expected: bool, tmp_path: Path) -> None:
    """Engine, verdict and `tiebreak compare` agree at the boundary; tests/report/test_evidence.py has the report."""
    assert usable(score) == expected
    assert usable_scores({0: score}) == ({0: score} if expected else {})
    path = tmp_path / "scores.csv"
    path.write_text(f"arm,seed,score\na,0,{score!r}\nb,0,1\n")
    if expected:
        assert estimate([score]).mean == score
        assert read_scores(path)["a"] == {0: score}
        return
    with pytest.raises(ValueError, match="finite"):
        estimate([score])
    with pytest.raises(TiebreakError, match="line 2"):
        read_scores(path)


@few
@given(families(), st.sampled_from([Looks((10,), 10), Looks((6, 9, 14), 60), Looks((10, 34), 10)]))
def test_under_looks_the_interval_excludes_zero_exactly_when_the_adjusted_p_rejects(
    samples: list[Sample], looks: Looks
) -> None:
    for result, alone in zip(
        compare(samples, margin=MARGIN, looks=looks), compare(samples, margin=MARGIN), strict=True
    ):
        assert result.low is not None
        assert result.high is not None
        assert result.p_adjusted is not None
        assert alone.p_adjusted is not None
        excludes = result.low >= 0 or result.high <= 0  # an end of exactly 0 is open
        assert excludes == (result.p_adjusted <= 0.05) or result.low == result.high
        assert result.p_adjusted >= alone.p_adjusted  # looking more than once never helps
