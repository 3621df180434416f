from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.small_study import cohort_job, one_run, write_data
from tiebreak.drive.lone_run import choose, time_captured
from tiebreak.tasks.interface import Split
from tiebreak.train.fused.engine import Fused
from tiebreak.train.run_group import make_group


@pytest.mark.parametrize(
    ("captured", "fused", "steps", "wanted"),
    [
        (None, None, 100, "loop"),
        ((1.0, 0.1), None, 1_000, "captured"),
        ((1.0, 0.1), None, 10, "loop"),  # preparing takes longer than it saves
        ((9.9, 0.0), None, 1_000, "loop"),  # not faster by 5 %
        ((1.0, 0.1), 2.0, 1_000, "captured"),
        ((1.0, 0.1), 0.5, 1_000, "fused"),
        (None, 0.5, 1_000, "fused"),
    ],
)
def test_the_fastest_is_chosen_and_the_simpler_one_where_it_is_as_fast(
    captured: Any, fused: float | None, steps: int, wanted: str
) -> None:
    assert choose(10.0, captured, fused, steps) == wanted


@pytest.mark.parametrize(("preparing", "wanted"), [(0.4, "fused"), (0.6, "loop")])
def test_fused_steps_must_save_what_preparing_them_takes(preparing: float, wanted: str) -> None:
    assert choose(10.0, None, 5.0, 100, preparing=preparing) == wanted


def test_a_step_of_one_run_is_timed_without_a_run_axis_or_the_reason_is_told(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    run = one_run(data, batch=8)
    job = cohort_job([run], tmp_path / "out", data)
    split = make_group(job).split("train", {})
    seen = []

    def clock(engine: Fused, split: Split) -> float:
        seen.append(engine)
        return 0.002

    found = time_captured(job, run, split, clock)
    assert isinstance(found, tuple)
    assert found[0] == pytest.approx(2.0)
    assert len(set(map(id, seen))) == 1

    def fails(engine: Fused, split: Split) -> float:
        raise RuntimeError("no such kernel")

    reason = time_captured(job, run, split, fails)
    assert isinstance(reason, str)
    assert reason.startswith("RuntimeError: no such kernel, at test_lone_run.py:")
