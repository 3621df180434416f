from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiebreak.drive.jobs import (
    CPU_COHORT,
    describe_choice,
    most_at_once,
    needs_measuring,
    places_for,
    split_into_jobs,
    strategy_for,
)
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Run, cohort_names, cohorts
from tiebreak.results.record import Choice
from tiebreak.study.schema import Optimiser

FUSED = Choice(
    cohort="cohort", device="cuda", strategy="fused", threads=1, runs=30, loop_ms=0.25, fused_ms=0.125, fits=400
)
LOOP = dataclasses.replace(FUSED, strategy="loop", fused_ms=0.5, loop_ms=0.25)
CANNOT = dataclasses.replace(LOOP, fused_ms=None, reason="it draws random numbers")
FIRST = Run(
    design="cnn-pool",
    source="source",
    build={},
    task="classify",
    options={},
    data="pneumoniamnist",
    checksum="checksum",
    optimiser=Optimiser(),
    hypers={"lr": 0.1},
    setting={"lr": 0.1},
    seed=0,
    epochs=2,
    batch=8,
    comparability=2,
    evaluations=({},),
)


def seeds(count: int) -> list[Run]:
    return [FIRST.model_copy(update={"seed": seed}) for seed in range(count)]


def sizes(runs: int, device: str, processes: int = 1, fits: int | None = None) -> list[int]:
    choice = None if fits is None else dataclasses.replace(FUSED, fits=fits)
    return [len(share) for share in split_into_jobs(seeds(runs), "fused", choice, device, processes)]


def test_a_cohort_holds_the_seeds_and_the_grid_of_a_design() -> None:
    runs = [
        FIRST.model_copy(update={"design": design, "setting": {"lr": rate}, "hypers": {"lr": rate}, "seed": seed})
        for design in ("cnn-strided", "cnn-pool")
        for rate in (0.1, 0.01)
        for seed in range(3)
    ]
    groups = cohorts(runs)
    assert [len(some) for some in groups.values()] == [6, 6]
    assert list(cohort_names(groups).values()) == ["cnn-strided", "cnn-pool"]
    assert [run for some in groups.values() for run in some] == runs
    assert all(run.cohort == key for key, runs in groups.items() for run in runs)


@pytest.mark.parametrize(
    ("changes", "together"),
    [
        ({"seed": 7}, True),
        ({"hypers": {"lr": 5.0}, "setting": {"lr": 5.0}}, True),
        ({"epochs": 9}, True),
        ({"evaluations": ({}, {"shift": 2})}, True),
        ({"design": "mlp"}, False),
        ({"build": {"width": 3}}, False),
        ({"source": "another"}, False),
        ({"options": {"divisor": 255}}, False),
        ({"checksum": "another"}, False),
        ({"batch": 16}, False),
        ({"comparability": 99}, False),
    ],
    ids=str,
)
def test_what_may_differ_within_a_cohort(changes: dict[str, Any], together: bool) -> None:
    assert (FIRST.model_copy(update=changes).cohort == FIRST.cohort) is together


def test_own_images_may_move() -> None:
    here, there = (FIRST.model_copy(update={"data": path}) for path in ("./images", "./moved/images"))
    assert here.cohort == there.cohort


def test_cohorts_of_one_design_are_called_by_what_differs() -> None:
    other = FIRST.model_copy(update={"options": {"divisor": 255}, "build": {"width": 3}})
    mlp = FIRST.model_copy(update={"design": "mlp"})
    plain = FIRST.model_copy(update={"options": {"divisor": 256}, "build": {"width": 3}})
    names = cohort_names(cohorts([plain, other, mlp]))
    assert list(names.values()) == ["cnn-pool divisor=256", "cnn-pool divisor=255", "mlp"]


def test_cohorts_that_differ_in_their_update_rule_only_are_called_by_it() -> None:
    rules = [{"kind": kind} for kind in ("sgd", "adam")]
    runs = [FIRST.model_copy(update={"optimiser": Optimiser.model_validate(rule)}) for rule in rules]
    assert list(cohort_names(cohorts(runs)).values()) == ["cnn-pool optimiser=sgd", "cnn-pool optimiser=adam"]


@pytest.mark.parametrize("wanted", ["auto", "fused", "loop"])
@pytest.mark.parametrize("runs", [1, 2])
def test_what_has_to_be_measured(wanted: Any, runs: int) -> None:
    assert not needs_measuring(runs, LOOP, wanted, "cpu")
    assert needs_measuring(runs, None, wanted, "cpu") is {"auto": runs > 1, "fused": True, "loop": False}[wanted]
    assert needs_measuring(runs, None, wanted, "cuda") is (wanted != "loop")  # a lone run may be captured


def test_the_strategy_is_the_one_asked_for_or_measured() -> None:
    measured = [strategy_for("a", choice, "auto") for choice in (FUSED, LOOP, CANNOT, None)]
    assert measured == ["fused", "loop", "loop", "loop"]
    assert [strategy_for("a", choice, "loop") for choice in (FUSED, LOOP, None)] == ["loop"] * 3
    assert [strategy_for("a", choice, "fused") for choice in (FUSED, LOOP, None)] == ["fused"] * 3
    with pytest.raises(TiebreakError, match=r"net cannot be fused: it draws random numbers.*--strategy auto"):
        strategy_for("net", CANNOT, "fused")


def test_in_a_loop_every_run_is_a_job() -> None:
    runs = seeds(3)
    assert split_into_jobs(runs, "loop", None, "cpu", 2) == [[run] for run in runs]


@pytest.mark.parametrize(
    ("runs", "processes", "found"),
    [
        (1, 2, [1]),
        (2, 2, [2]),
        (3, 2, [3]),  # a lone run would not be fused
        (4, 2, [2, 2]),
        (30, 2, [15, 15]),
        (30, 1, [15, 15]),
        (34, 2, [8, 9, 8, 9]),  # three would leave a process idle
        (5, 8, [2, 3]),
    ],
)
def test_on_the_cpu_every_process_gets_work(runs: int, processes: int, found: list[int]) -> None:
    assert sizes(runs, "cpu", processes) == found


def test_on_a_gpu_as_many_as_fit_are_trained_at_once() -> None:
    assert sizes(300, "cuda") == [300]
    assert sizes(300, "cuda", fits=1000) == [300]
    assert sizes(300, "cuda", fits=128) == [100, 100, 100]
    assert sizes(3, "cuda", fits=0) == [1, 1, 1]


@given(st.integers(1, 200), st.sampled_from(["cpu", "cuda"]), st.integers(1, 9), st.none() | st.integers(1, 300))
def test_shares_are_all_runs_in_order_and_of_nearly_equal_size(
    runs: int, device: str, processes: int, fits: int | None
) -> None:
    choice = None if fits is None else dataclasses.replace(FUSED, fits=fits)
    parts = split_into_jobs(seeds(runs), "fused", choice, device, processes)
    assert [run.seed for part in parts for run in part] == list(range(runs))
    most, least = max(map(len, parts)), min(map(len, parts))
    assert most - least <= 1
    limit = min(fits or runs, CPU_COHORT if device == "cpu" else runs)
    assert most <= limit
    if runs > 1 and limit > 2:
        assert least > 1
    if device == "cpu" and runs >= 2 * processes:
        assert len(parts) >= processes
    if fits is None:
        assert most_at_once(runs, device, processes) == most


@pytest.mark.parametrize(
    ("choice", "strategy", "parts"),
    [
        (
            dataclasses.replace(FUSED, device="cpu", fused_ms=0.42, loop_ms=0.88),
            "fused",
            ("net: 30 runs fused", "2.1 times", "0.42 ms", "0.88"),
        ),
        (LOOP, "loop", ("net: 30 runs", "fused is not faster", "0.5 ms", "0.25")),
        (dataclasses.replace(LOOP, fused_ms=0.1), "loop", ("net: 30 runs", "preparing", "0.1 ms", "0.25")),
        (CANNOT, "loop", ("net: 30 runs", "it draws random numbers")),
        (
            dataclasses.replace(FUSED, fused_ms=0.1, loop_ms=2.0, captured_ms=0.5, compiled=True, compile_saves=30.0),
            "fused",
            ("5.0 times", "0.5 ms as a CUDA graph", "2 ms in a loop", "save 30 s"),
        ),
        (
            dataclasses.replace(
                FUSED, fused_ms=0.1, loop_ms=2.0, compiled=True, compile_saves=30.0, compile_seconds=47.0
            ),
            "fused",
            ("compiled (about 47 s)", "save 30 s"),
        ),
        (
            dataclasses.replace(
                FUSED, fused_ms=0.1, loop_ms=2.0, compiled=False, compile_saves=-3.0, compile_seconds=4.0
            ),
            "fused",
            ("not compiled", "4 s"),
        ),
        (
            dataclasses.replace(CANNOT, loop_ms=2.0, captured_ms=0.5),
            "captured",
            ("one after the other as CUDA graphs", "it draws random numbers", "0.5 ms"),
        ),
    ],
    ids=[
        "fused",
        "loop",
        "prepared too long",
        "cannot be fused",
        "against a CUDA graph",
        "compiled",
        "not compiled",
        "captured",
    ],
)
def test_a_choice_is_described_in_one_line(choice: Any, strategy: Any, parts: tuple[str, ...]) -> None:
    text = describe_choice("net", 30, choice, strategy)
    assert [part for part in parts if part not in text] == []
    assert "\n" not in text


def test_on_a_gpu_no_gain_is_claimed_over_a_loop_alone() -> None:
    text = describe_choice("net", 30, dataclasses.replace(FUSED, device="cuda", captured_ms=None), "fused")
    assert "30 runs fused (" in text


def test_a_gpu_of_a_cluster_gets_a_part_of_every_cohort() -> None:
    assert sizes(30, "cuda", processes=1, fits=400) == [30]
    assert sizes(30, "cuda", processes=4, fits=400) == [7, 8, 7, 8]
    assert sizes(3, "cuda", processes=4, fits=400) == [3]  # never a lone run for the sake of it


@given(st.integers(1, 400), st.integers(0, 4000), st.integers(1, 200))
def test_cohorts_are_spread_so_that_no_place_is_idle(runs: int, others: int, slots: int) -> None:
    places = places_for(runs, runs + others, slots)
    assert 1 <= places <= slots
    if not others:
        assert places == slots
    assert places >= min(slots, slots * runs / (runs + others))
