"""`kill -9` before and after each fsync, rename and commit of a study: the next run ends as if nothing had happened."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from support.torture import CASES, KILLS, QUICK, case, with_kill_points
from support.torture_log import count, skip_when_late

pytestmark = pytest.mark.torture
PARTS = 40  # tests of a case in the long run: together they take every point
PLACES = [(*chosen, part) for part in range(PARTS) for chosen in CASES] if KILLS else [(*QUICK, 0)]
PLACES_OF_A_KILL = ("driver fsync", "driver rename", "driver commit", "worker fsync", "worker rename")
KINDS = {f"{place} {when}" for place in PLACES_OF_A_KILL for when in ("before", "after")}


@pytest.mark.parametrize(("family", "strategy", "part"), PLACES)
def test_a_study_killed_at_a_named_point_is_the_study_without_interruption(
    family: str, strategy: str, part: int, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    skip_when_late()
    tried = case(family, strategy, tmp_path_factory)
    assert {" ".join(point.split()[:3]) for point in tried.points} == KINDS
    points = random.Random(f"{family} {strategy}").sample(tried.points, len(tried.points))
    for point in points[part::PARTS] if KILLS else points[:1]:
        skip_when_late()
        command = tried.command(tmp_path / point.replace(" ", "-"))
        log = tmp_path / f"{point}.log"
        code, output = command.finish(with_kill_points(log, point))
        reached = log.exists()  # a cohort saves as often as it has time for, so there may be fewer points
        assert code == (-signal.SIGKILL if reached and point.startswith("driver") else 0), (point, output)
        command.complete()
        tried.assert_equal(command.folder)
        count(
            "kills at named points" if reached else "points not reached",
            case=tried.name,
            kind=point[: point.rindex(" ")],
        )
