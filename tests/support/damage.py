"""A small finished study, ways to damage its folder, and `tiebreak run` without worker processes."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pytest

from support.small_study import contents, one_thread
from tiebreak import api
from tiebreak.drive import runner
from tiebreak.drive.local_workers import Pool
from tiebreak.drive.messages import Job, Message, Note, decode
from tiebreak.drive.runner import Machine
from tiebreak.errors import TiebreakError
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.study.schema import Study

DESIGNS = """
from tiebreak.models.gcn import Gcn


class Small(Gcn):
    def __init__(self, shape):
        super().__init__(shape, hidden=4)


DESIGNS = {"small": Small}
"""

Damage = Callable[[Path, random.Random], None]


class PoolHere(Pool):
    """Does the jobs in this process, one after the other, with the real worker: starting a process takes seconds."""

    def run(self, jobs: Sequence[Job], at_most: int | None = None) -> Generator[Message, None, None]:
        from tiebreak.drive.worker import do_job

        for job in jobs:
            out = io.StringIO()
            with one_thread():
                do_job(job, out)
            for line in out.getvalue().splitlines():
                yield decode(line)


@pytest.fixture(name="here")
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training in this process."""
    monkeypatch.setattr(runner, "Pool", PoolHere)


def graph_study(designs: Path, **more: object) -> Study:
    """Two designs on the karate club, one of them from the user's file `designs`; two runs of two epochs."""
    designs.write_text(DESIGNS)
    return Study.model_validate(
        {
            "name": "graphs",
            "question": "Do the edges help?",
            "task": "nodes",
            "data": "karate",
            "designs_from": str(designs),
            "metric": "accuracy",
            "margin": 0.05,
            "seeds": 1,
            "budget": {"epochs": 2, "batch": 1},
            "fixed": {"lr": 0.1},
            "arms": [
                {"name": "gcn", "design": "small"},
                {"name": "mlp", "design": "mlp-graph", "build": {"hidden": 4}},
            ],
            "comparisons": [{"a": "gcn", "b": "mlp"}],
            **more,
        }
    )


def run_here(study: Study, folder: Path) -> list[str]:
    """`tiebreak run`; the lines that it showed."""
    heard: list[Message] = []
    api.run(study, folder, machine=Machine(workers=1, strategy="loop"), listen=heard.append)
    return [message.text for message in heard if isinstance(message, Note)]


def flip(path: Path, chance: random.Random) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def truncate(path: Path, chance: random.Random) -> None:
    """Cut a file anywhere."""
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


def delete(path: Path, _: random.Random) -> None:
    """Remove a file."""
    path.unlink()


def find(folder: Path, name: str) -> Path:
    """A file of the folder by its name, or the first or the last checkpoint."""
    states = sorted((folder / CHECKPOINTS).iterdir())
    return {"first checkpoint": states[0], "last checkpoint": states[-1]}.get(name, folder / name)


def problems(folder: Path) -> list[str]:
    """What `check` finds, or the line with which it refuses."""
    try:
        return api.check(folder).problems
    except TiebreakError as error:
        return [str(error)]


def assert_healed(study: Study, folder: Path, whole: Path) -> list[str]:
    """`run` leaves a clean folder with the records of the untouched one. What it said."""
    said = run_here(study, folder)
    assert api.check(folder).problems == []
    assert contents(folder) == contents(whole)
    assert api.open_result(folder).verdict.comparisons == api.open_result(whole).verdict.comparisons
    return said


def hurt_and_heal(study: Study, whole: Path, folder: Path, name: str, damage: Damage, chance: random.Random) -> None:
    """Damage a file: `check` names it, readers do not believe it, `run` says so and makes it again."""
    path = find(folder, name)
    damage(path, chance)
    found = problems(folder)
    assert any(path.name in line for line in found)
    try:
        result = api.open_result(folder)
    except TiebreakError as error:
        found.append(str(error))
    else:
        assert result.records.damaged or result.verdict == api.open_result(whole).verdict
    assert not any("\n" in line for line in found)
    said = assert_healed(study, folder, whole)
    assert any(path.name in line for line in said)


def undamaged(study: Study, factory: pytest.TempPathFactory) -> Path:
    """The results of the study, for tests to copy."""
    folder = factory.mktemp("whole") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "Pool", PoolHere)
        run_here(study, folder)
    return folder
