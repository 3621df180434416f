"""A disk that is full at a random moment: one line, exit code 2; with room again the study ends as without it.

RLIMIT_FSIZE stands for the disk: a file that grows beyond it cannot be written, by the driver or by a worker.
"""

from __future__ import annotations

import random
import resource
from functools import partial
from pathlib import Path

import pytest

from support.torture import CASES, QUICK, case, results, times

pytestmark = pytest.mark.torture


MANY = times(0)


@pytest.mark.parametrize("number", range(3 * len(CASES) if MANY else 1))
def test_a_study_on_a_full_disk_stops_with_one_line_and_goes_on_later(
    number: int, family_data: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    source = random.Random(number)
    tried = case(*(CASES[number % len(CASES)] if MANY else QUICK), family_data, tmp_path_factory.getbasetemp())
    largest = max(path.stat().st_size for path in tried.folder.rglob("*") if path.is_file())
    command = tried.command(tmp_path / "out")
    for _ in range(2 if MANY else 1):
        room = source.randrange(2_000, largest)
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (room, room))
        code, output = command.finish(preexec_fn=limit)
        assert code in (0, 2), (room, output)
        assert "Traceback" not in output, (room, output)
        if code == 2:
            (line,) = [line for line in output.splitlines() if line.startswith("tiebreak: ")]
            assert line.isprintable()
    command.complete()
    assert results(command.folder) == tried.whole
