from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.small_study import cohort_job, small_study, write_data
from tiebreak.drive import step_turns as module
from tiebreak.drive.messages import Note, StepsTimed
from tiebreak.drive.step_turns import LEAST_ROUNDS, MOST_STEPS, ROUNDS, time_in_turns
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Run
from tiebreak.results.record import StepTimes


@pytest.fixture(scope="module", name="data")
def _data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(name="runs")
def _runs(data: Path) -> list[Run]:
    arms = [{"name": name, "design": name} for name in ("mlp", "cnn-strided")]
    study = small_study(seeds=1, arms=arms, comparisons=[{"a": "mlp", "b": "cnn-strided"}])
    return list(make_plan(study, data).runs.values())


def timed(runs: list[Run], data: Path, seconds: float) -> tuple[tuple[StepTimes, ...], list[str]]:
    *notes, last = time_in_turns(cohort_job(runs, data, data, work="time", seconds=seconds))
    assert isinstance(last, StepsTimed)
    return last.times, [note.text for note in notes if isinstance(note, Note)]


def clocked(monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[Any]:
    """Have every pass take so many seconds. Returns the loops in the order in which they were timed."""
    now, order = 0.0, list[Any]()

    def clock(loop: Any, split: Any) -> float:
        nonlocal now
        order.append((loop, len(split["labels"])))
        now += seconds
        return seconds

    monkeypatch.setattr(module, "_seconds", clock)
    monkeypatch.setattr("tiebreak.drive.step_turns.time.perf_counter", lambda: now)
    return order


def test_every_arm_has_a_time_in_each_round_and_the_memory_of_a_step(
    runs: list[Run], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 1)
    monkeypatch.setattr(module, "ROUNDS", LEAST_ROUNDS)
    times, notes = timed(runs, data, seconds=600.0)
    assert notes == []
    assert [each.cohort for each in times] == [run.cohort for run in runs]
    assert {each.group for each in times} == {times[0].group}
    assert {len(each.ms) for each in times} == {LEAST_ROUNDS}
    assert all(ms > 0 for each in times for ms in each.ms)
    assert {(each.steps, each.device) for each in times} == {(12, "cpu")}
    assert all((each.memory_bytes or 0) > 4 * 1000 for each in times)


def test_rounds_go_forth_and_back_with_equal_steps(
    runs: list[Run], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = clocked(monkeypatch, 0.001)
    timed(runs, data, seconds=1.0)
    (a, _), (b, _), *rounds = order  # each has warmed up
    assert [loop for loop, _ in rounds] == [a, b, b, a] * (ROUNDS // 2)
    assert {examples for _, examples in rounds} == {MOST_STEPS * 8}


@pytest.mark.parametrize(("budget", "rounds"), [(10 * LEAST_ROUNDS, LEAST_ROUNDS), (2 * LEAST_ROUNDS - 1, 0)])
def test_slow_steps_have_fewer_rounds_or_none(
    runs: list[Run], data: Path, monkeypatch: pytest.MonkeyPatch, budget: float, rounds: int
) -> None:
    clocked(monkeypatch, 1.0 if not rounds else 5.0)
    times, _ = timed(runs, data, seconds=budget)
    assert {len(each.ms) for each in times} == {rounds}
    assert all(each.memory_bytes for each in times)


def test_a_design_that_raises_has_no_times_and_the_reason_is_told(runs: list[Run], data: Path) -> None:
    broken = runs[0].model_copy(update={"build": {"width": 3}})
    times, (note,) = timed([broken, runs[1]], data, seconds=10.0)
    assert "width" in note
    assert [(each.ms, each.memory_bytes is None) for each in times] == [((), True), ((), False)]


def test_a_design_that_raises_in_a_round_is_the_one_that_is_named(
    runs: list[Run], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[Any]()

    def clock(loop: Any, split: Any) -> float:
        calls.append(loop)
        if len(calls) > 2 and loop is calls[1]:  # both have warmed up
            raise ValueError("late bug")
        return 0.001

    monkeypatch.setattr(module, "_seconds", clock)
    times, notes = timed(runs, data, seconds=1.0)
    assert len(notes) == 1
    assert runs[1].label in notes[0]
    assert "late bug" in notes[0]
    assert [each.ms for each in times] == [(), ()]
