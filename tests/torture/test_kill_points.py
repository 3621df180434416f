"""`kill -9` before and after each fsync, rename and commit of a study: the next run ends as if nothing had happened."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from support.torture import CASES, QUICK, case, results, times, with_kill_points

pytestmark = pytest.mark.torture
MANY = times(0)  # `make torture`: every point of every case
FEW = 1


@pytest.mark.parametrize(("family", "strategy"), CASES if MANY else [QUICK])
def test_a_study_killed_at_a_named_point_is_the_study_without_interruption(
    family: str, strategy: str, family_data: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    tried = case(family, strategy, family_data, tmp_path_factory.getbasetemp())
    log = tmp_path / "points"
    code, output = tried.command(tmp_path / "logged").finish(with_kill_points(log))
    assert code == 0, output
    points = log.read_text().splitlines()
    kinds = {" ".join(point.split()[:3]) for point in points}
    assert {"driver commit before", "driver fsync after", "driver rename before", "worker rename after"} <= kinds
    for number, point in enumerate(points if MANY else random.Random(family).sample(points, FEW)):
        command = tried.command(tmp_path / str(number))
        code, output = command.finish(with_kill_points(tmp_path / f"{number}.log", point))
        assert code == (-signal.SIGKILL if point.startswith("driver") else 0), (point, output)
        command.complete()
        assert results(command.folder) == tried.whole, point
