"""A small finished study, ways to damage its folder, and `tiebreak run` without worker processes."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.small_study import contents, loop_machine, workers_here
from tiebreak import api
from tiebreak.drive.messages import Message, Note
from tiebreak.errors import TiebreakError
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.study.schema import Study
from tiebreak.verdict.model import Verdict

DESIGNS = """
from tiebreak.models.gcn import Gcn


class Small(Gcn):
    def __init__(self, shape):
        super().__init__(shape, hidden=4)


DESIGNS = {"small": Small}
"""

Damage = Callable[[Path, random.Random], None]


@pytest.fixture(name="here")
def _here() -> Iterator[None]:
    """Training in this process."""
    with workers_here():
        yield


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
    api.run(study, folder, machine=loop_machine(), listen=heard.append)
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


@functools.cache
def untouched(whole: Path) -> tuple[dict[str, Any], Verdict]:
    """What the untouched folder holds, and its verdict: read once."""
    return contents(whole), api.open_result(whole).verdict


def assert_healed(study: Study, folder: Path, whole: Path) -> list[str]:
    """`run` leaves a clean folder with the records of the untouched one. What it said."""
    said = run_here(study, folder)
    assert api.check(folder).problems == []
    expected, verdict = untouched(whole)
    assert contents(folder) == expected
    assert api.open_result(folder).verdict.comparisons == verdict.comparisons
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
        assert result.records.damaged or result.verdict == untouched(whole)[1]
    assert not any("\n" in line for line in found)
    said = assert_healed(study, folder, whole)
    assert any(path.name in line for line in said)


def undamaged(study: Study, factory: pytest.TempPathFactory) -> Path:
    """The results of the study, for tests to copy."""
    folder = factory.mktemp("whole") / "out"
    with workers_here():
        run_here(study, folder)
    return folder
