"""Small studies of every task, run by the command line, stopped in every way, and compared with one that was not.

TORTURE=200 is the long run (`make torture`): so many kills, and all else as often as the tests say. Without it each
test is done once, on the smallest study.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock

from support.families import FAMILIES
from support.small_study import contents
from support.torture_log import count
from tiebreak.results.check import check
from tiebreak.results.packing import fingerprint
from tiebreak.results.store import Store
from tiebreak.study import parsing, registry
from tiebreak.study.schema import Study
from tiebreak.verdict.model import Verdict

KILL_POINTS = Path(__file__).parent / "kill_points"
PATIENCE_SECONDS = 600
STRATEGIES = ("loop", "fused")
KILLS = int(os.environ.get("TORTURE", "0"))  # 0: the short version
QUICK = ("node-classifier", "loop")
EVERY_CASE = [(family, strategy) for family in FAMILIES for strategy in STRATEGIES]
CASES = EVERY_CASE if KILLS else [QUICK]


def write_study(family_name: str, folder: Path, data: Path) -> Path:
    """Two designs of a family, two seeds, two epochs, as a file."""
    family = FAMILIES[family_name]
    names = [name for name, entry in registry.DESIGNS.items() if entry.family == family_name][:2]
    known = {name: registry.DESIGNS[name].options for name in names}
    study = Study.model_validate(
        {
            "name": f"torture-{family.task}",
            "question": "Does it survive?",
            "task": family.task,
            "data": str(data / family.data) if family.data.startswith("./") else family.data,
            "metric": family.metric,
            "margin": 0.01,
            "seeds": 2,
            "options": dict(family.options),
            "budget": {"epochs": 2, "batch": family.batch},
            "fixed": {"lr": 0.01},
            "arms": [
                {
                    "name": name,
                    "design": name,
                    "build": {key: value for key, value in family.build.items() if key in known[name]},
                }
                for name in names
            ],
            "comparisons": [{"a": names[0], "b": names[1]}],
        }
    )
    path = folder / f"{family.task}.toml"
    path.write_text(parsing.to_toml(study), "utf-8")
    return path


class Command:
    """`tiebreak run` of a study into a folder, started in a session of its own."""

    def __init__(self, study: Path, folder: Path, data: Path, strategy: str, workers: int = 1) -> None:
        self.folder = folder
        options = ("--out", folder, "--data-dir", data, "--workers", workers, "--strategy", strategy)
        self.arguments = [sys.executable, "-m", "tiebreak", "run", *map(str, (study, *options))]

    def start(self, environment: Mapping[str, str] | None = None, **more: Any) -> subprocess.Popen[str]:
        """The running command; `environment` is added to ours."""
        return subprocess.Popen(
            self.arguments,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **more,
        )

    def finish(self, environment: Mapping[str, str] | None = None, **more: Any) -> tuple[int, str]:
        """Its exit code and what it printed."""
        process = self.start(environment, **more)
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
        return process.returncode, output

    def complete(self, environment: Mapping[str, str] | None = None) -> None:
        """Run to the end, which must be a good one."""
        code, output = self.finish(environment)
        assert code == 0, output
        assert check(self.folder).problems == []


@dataclass(frozen=True)
class Case:
    """A study with one strategy, and what it leaves when nothing happens to it."""

    name: str
    study: Path
    data: Path
    strategy: str
    folder: Path
    seconds: float  # that it takes
    points: Sequence[str]  # that it passes, where it can be killed
    whole: Mapping[str, Any]

    def command(self, folder: Path, workers: int = 1) -> Command:
        """The study into another folder."""
        return Command(self.study, folder, self.data, self.strategy, workers)

    def assert_equal(self, folder: Path) -> None:
        """Check that another folder holds the same, to the last bit."""
        assert results(folder) == self.whole
        count("runs compared", len(self.whole["runs"]), case=self.name)


def case(family: str, strategy: str, factory: pytest.TempPathFactory) -> Case:
    """The case, with the study run once without interruption; the processes of pytest-xdist share it."""
    base = factory.getbasetemp()
    return _case(family, strategy, base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


@cache
def _case(family: str, strategy: str, base: Path) -> Case:
    data, name = base / "torture-data", f"{family}-{strategy}"
    with FileLock(base / "torture-data.lock"):
        if not data.exists():
            data.mkdir()
            for each in FAMILIES.values():
                each.write_data(data)
    folder = base / name
    clock, log, out = folder / "seconds", folder / "points", folder / "out"
    with FileLock(base / f"{name}.lock"):
        if not clock.exists():
            folder.mkdir()
            start = time.monotonic()
            Command(write_study(family, folder, data), out, data, strategy).complete(with_kill_points(log))
            clock.write_text(str(time.monotonic() - start))
    study = folder / f"{FAMILIES[family].task}.toml"
    return Case(name, study, data, strategy, out, float(clock.read_text()), log.read_text().splitlines(), results(out))


def with_kill_points(log: Path, at: str | None = None) -> dict[str, str]:
    """The environment in which a command logs the points it passes, or is killed at one of them."""
    paths = [str(KILL_POINTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(paths), "KILL_LOG": str(log), **({"KILL_AT": at} if at else {})}


CLOCKS: Any = {  # of a verdict
    "cost": True,
    "designs": {"__all__": {"train_seconds", "step_ms", "solo_seconds"}},
    "comparisons": {"__all__": {"time_ratio", "time_low", "time_high"}},
}


def results(folder: Path) -> dict[str, Any]:
    """All that must not depend on interruptions: records, checkpoints, exhibits, and the verdict without clocks."""
    with closing(Store.open(folder)) as store:
        exhibits = store.records().exhibits
    shown = {(key, name): fingerprint(item.arrays) for key, some in exhibits.items() for name, item in some.items()}
    verdict = Verdict.read(folder).model_dump(mode="json", exclude=CLOCKS)
    return {**contents(folder), "exhibits": shown, "verdict": verdict}


def children(pid: int) -> list[psutil.Process]:
    """The processes that a process has started."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill(processes: Iterable[psutil.Process]) -> None:
    """Kill these processes of ours, by their ids."""
    for process in processes:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue


def wait_for_end(process: subprocess.Popen[str], workers: Sequence[psutil.Process]) -> None:
    """Until the command and its workers are gone: a worker ends when the pipe of its driver closes."""
    process.communicate(timeout=PATIENCE_SECONDS)
    end = time.monotonic() + PATIENCE_SECONDS
    while any(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in workers if _exists(worker)):
        assert time.monotonic() < end
        time.sleep(0.02)


def _exists(process: psutil.Process) -> bool:
    try:
        process.status()
    except psutil.NoSuchProcess:
        return False
    return True
