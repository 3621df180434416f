"""Flipped bits, cuts and deletions of every file of a results folder: each is named, none is believed, `run` heals it.

DAMAGE is how often each file is hurt in each way (`make torture`: 50).
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from support.damage import Damage, delete, find, flip, graph_study, hurt_and_heal, truncate, undamaged
from support.torture_log import count, skip_when_late
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.results.lock import LOCK_FILE
from tiebreak.results.seal import SEAL_FILE
from tiebreak.study.schema import Study

pytestmark = [pytest.mark.torture, pytest.mark.usefixtures("here")]
TIMES = int(os.environ.get("DAMAGE", "0"))
STEP = 5  # times in one test
FILES = ("study.toml", "plan.json", "designs.py", "verdict.json", "report.html", "report.md", "records.sqlite")
EVERY_FILE = (*FILES, SEAL_FILE, "first checkpoint", "last checkpoint")
WAYS = {"flip": flip, "truncate": truncate, "delete": delete}
SHORT = [("report.html", "delete", 0), ("verdict.json", "flip", 0), (SEAL_FILE, "truncate", 0)]  # test_heal has others
LONG = [
    (name, way, start)
    for start in range(0, TIMES, STEP)
    for name in EVERY_FILE
    for way in WAYS
    if way != "delete" or (start == 0 and name != SEAL_FILE)  # a study that was killed has no seal
]


@pytest.fixture(scope="module", name="study")
def _study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return graph_study(tmp_path_factory.mktemp("mine") / "mine.py")


@pytest.fixture(scope="module", name="whole")
def _whole(tmp_path_factory: pytest.TempPathFactory, study: Study) -> Path:
    return undamaged(study, tmp_path_factory)


def test_no_file_is_forgotten(whole: Path) -> None:
    known = {find(whole, name).relative_to(whole) for name in EVERY_FILE}
    found = {path.relative_to(whole) for path in whole.rglob("*") if path.is_file()}
    assert len([path for path in found if path.parent.name == CHECKPOINTS]) == 2
    assert found - known == {Path(LOCK_FILE)}  # empty


@pytest.mark.parametrize(("name", "way", "start"), LONG if TIMES else SHORT)
def test_damage_of_every_file_is_named_and_healed(
    study: Study, whole: Path, tmp_path: Path, name: str, way: str, start: int
) -> None:
    damage: Damage = WAYS[way]
    for number in range(start, start + 1 if way == "delete" or not TIMES else min(start + STEP, TIMES)):
        skip_when_late()
        folder = Path(shutil.copytree(whole, tmp_path / str(number)))
        hurt_and_heal(study, whole, folder, name, damage, random.Random(f"{name} {number}"))
        count("damaged files healed", way=way, file=name)
        shutil.rmtree(folder)
