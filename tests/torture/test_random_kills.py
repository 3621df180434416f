"""`kill -9` at random moments, of the driver, of a worker, or of all: the study ends as if nothing had happened."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from support.torture import CASES, KILLS, case, children, kill, wait_for_end
from support.torture_log import count, skip_when_late

pytestmark = [pytest.mark.torture, pytest.mark.slow]  # fast: test_kill_points.py and drive/test_resume.py
EACH = 4 if KILLS else 1  # kills of one study before it is run to its end


@pytest.mark.parametrize("number", range(-(-KILLS // EACH) or 1))
def test_a_study_killed_at_random_moments_is_the_study_without_interruption(
    number: int, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    skip_when_late()
    source = random.Random(number)
    tried = case(*CASES[number % len(CASES)], tmp_path_factory)
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
        wait_for_end(process, workers)
        assert process.returncode in (0, -signal.SIGKILL), victim
        count("kills at random moments", case=tried.name, victim=victim)
    command.complete()
    tried.assert_equal(command.folder)
