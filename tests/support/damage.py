"""A small finished study, ways to damage its folder, and `tiebreak run` without worker processes."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pytest

from support.small_study import one_thread
from tiebreak import api
from tiebreak.drive import runner
from tiebreak.drive.local_workers import Pool
from tiebreak.drive.messages import Job, Message, Note, decode
from tiebreak.drive.runner import Machine
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
