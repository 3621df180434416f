"""`kill -9` at random moments, of the driver, of a worker, or of all: the study ends as if nothing had happened."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import psutil
import pytest

from support.torture import CASES, QUICK, case, children, kill, results, times, wait_for_end

pytestmark = pytest.mark.torture
MANY = times(0)
KILLS = times(1)
EACH = 4 if MANY else 1  # kills of one study before it is run to its end


@pytest.mark.parametrize("number", range(-(-KILLS // EACH)))
def test_a_study_killed_at_random_moments_is_the_study_without_interruption(
    number: int, family_data: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    source = random.Random(number)
    tried = case(*(CASES[number % len(CASES)] if MANY else QUICK), family_data, tmp_path_factory.getbasetemp())
    command = tried.command(tmp_path / "out", workers=source.choice((1, 2)))
    for _ in range(EACH):
        process = command.start()
        time.sleep(source.uniform(0, tried.seconds))  # the moment of the kill
        workers = children(process.pid)
        victim = source.choice(("driver", "worker", "all"))
        if victim != "worker":
            process.send_signal(signal.SIGKILL)
        if victim != "driver":
            kill(workers[:1] if victim == "worker" else workers)
        wait_for_end(process, [worker for worker in workers if isinstance(worker, psutil.Process)])
        assert process.returncode in (0, -signal.SIGKILL), victim
    command.complete()
    assert results(command.folder) == tried.whole
