"""A disk that is full at a random moment: one line, exit code 2; with room again the study ends as without it.

RLIMIT_FSIZE stands for the disk: a file that grows beyond it cannot be written, by the driver or by a worker.
"""

from __future__ import annotations

import random
import resource
from functools import partial
from pathlib import Path

import pytest

from support.torture import CASES, KILLS, case
from support.torture_log import count, skip_when_late

pytestmark = pytest.mark.torture
EACH = 2 if KILLS else 1  # full disks before there is room


@pytest.mark.parametrize("number", range(3 * len(CASES) if KILLS else 1))
def test_a_study_on_a_full_disk_stops_with_one_line_and_goes_on_later(
    number: int, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    skip_when_late()
    source = random.Random(number)
    tried = case(*CASES[number % len(CASES)], tmp_path_factory)
    largest = max(path.stat().st_size for path in tried.folder.rglob("*") if path.is_file())
    command = tried.command(tmp_path / "out")
    for _ in range(EACH):
        room = source.randrange(2_000, largest)
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (room, room))
        code, output = command.finish(preexec_fn=limit)
        assert code in (0, 2), (room, output)
        assert "Traceback" not in output, (room, output)
        if code == 2:
            (line,) = [line for line in output.splitlines() if line.startswith("tiebreak: ")]
            assert line.isprintable()
        count("full disks", case=tried.name, end=str(code))
    command.complete()
    tried.assert_equal(command.folder)
