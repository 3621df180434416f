"""Damage of a results folder: named by `check`, never believed by readers, healed by `run`."""

from __future__ import annotations

import hashlib
import random
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.damage import (
    Damage,
    assert_healed,
    delete,
    flip,
    graph_study,
    hurt_and_heal,
    problems,
    run_here,
    truncate,
    undamaged,
)
from tiebreak import api
from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import Message, RunEnded
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.results.connection import log_of
from tiebreak.results.heal import DAMAGED, heal
from tiebreak.results.manifest import STUDY_FILE
from tiebreak.results.migration import row_hash
from tiebreak.results.seal import SEAL_FILE
from tiebreak.results.store import STORE_FILE
from tiebreak.study.schema import Study
from tiebreak.verdict.model import VERDICT_FILE

pytestmark = pytest.mark.usefixtures("here")
FIRST = "WHERE rowid = (SELECT min(rowid) FROM {table})"


@pytest.fixture(scope="module", name="study")
def _study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return graph_study(tmp_path_factory.mktemp("mine") / "mine.py")


@pytest.fixture(scope="module", name="whole")
def _whole(tmp_path_factory: pytest.TempPathFactory, study: Study) -> Path:
    """The results of the study, never damaged. Tests copy them."""
    return undamaged(study, tmp_path_factory)


@pytest.fixture(name="folder")
def _folder(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "out")


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount >= 1


@pytest.mark.parametrize("damage", [flip, truncate, delete])
@pytest.mark.parametrize("name", ["plan.json", "designs.py", "records.sqlite", "first checkpoint"])
def test_damage_is_named_and_healed(study: Study, whole: Path, folder: Path, name: str, damage: Damage) -> None:
    """Every file, many times: tests/torture/test_damage.py."""
    hurt_and_heal(study, whole, folder, name, damage, random.Random(name))


def test_every_bit_of_the_plan_is_covered(whole: Path, folder: Path) -> None:
    path, chance = folder / PLAN_FILE, random.Random(0)
    for _ in range(200):
        shutil.copyfile(whole / PLAN_FILE, path)
        flip(path, chance)
        with pytest.raises(TiebreakError, match=r"plan\.json: damaged"):
            api.open_result(folder)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (PLAN_FILE, '"equal": true', '"equal": false'),
        (PLAN_FILE, '"gcn"', '"mlp"'),
        (STUDY_FILE, "epochs = 2", "epochs = 3"),
        (STUDY_FILE, "margin = 0.05", "margin = 0.5"),
        ("designs.py", "hidden=4", "hidden=8"),
        (VERDICT_FILE, "undecided", "a"),
    ],
)
def test_an_edited_file_is_named_and_no_other(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    (line,) = problems(folder)
    assert line.startswith(f"{path}: damaged or edited")
    assert ("edit your own file" in line) is (name == STUDY_FILE)


def test_the_study_of_the_folder_is_refused_when_it_was_edited(folder: Path, tiebreak: object) -> None:
    path = folder / STUDY_FILE
    path.write_text(path.read_text().replace("epochs = 2", "epochs = 3"))
    assert callable(tiebreak)
    done = tiebreak("run", path, "--out", folder)
    assert done.code == 2
    assert "edit your own file" in done.err
    assert "epochs = 3" in path.read_text()


def test_what_is_set_aside_is_kept(study: Study, whole: Path, folder: Path) -> None:
    (folder / PLAN_FILE).write_text("{}")
    said = assert_healed(study, folder, whole)
    (kept,) = (folder / DAMAGED).rglob(PLAN_FILE)
    assert kept.read_text() == "{}"
    assert any(str(kept.parent) in line for line in said)


@pytest.mark.parametrize(
    ("table", "column"),
    [("epochs", "content"), ("runs", "content"), ("finals", "outcomes"), ("exhibits", "arrays"),
     ("checkpoints", "file"), ("files", "sha256")],
)  # fmt: skip
def test_a_damaged_row_costs_only_what_it_held(
    study: Study, whole: Path, folder: Path, table: str, column: str
) -> None:
    change(folder, f"UPDATE {table} SET {column} = {column} || 'x' {FIRST.format(table=table)}")
    assert any(f"table {table}" in line for line in problems(folder))
    result = api.open_result(folder)  # readers go on without it
    if table in ("epochs", "runs", "finals", "exhibits"):
        assert any("damaged records were left out" in line for line in result.verdict.warnings)
    said = assert_healed(study, folder, whole)
    assert any(f"table {table}" in line for line in said)
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection:
        assert connection.execute("SELECT source FROM damaged").fetchall() == [(table,)]


@pytest.mark.parametrize("table", ["epochs", "runs", "finals", "checkpoints"])
def test_a_missing_row_is_made_again(study: Study, whole: Path, folder: Path, table: str) -> None:
    change(folder, f"DELETE FROM {table} {FIRST.format(table=table)}")
    (folder / SEAL_FILE).unlink()
    assert bool(problems(folder)) is (table in ("epochs", "checkpoints"))  # else: not trained yet, for all it knows
    api.open_result(folder)
    assert_healed(study, folder, whole)


def test_checkpoints_that_were_swapped_are_refused(study: Study, whole: Path, folder: Path) -> None:
    one, two = sorted((folder / CHECKPOINTS).iterdir())
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    assert len(problems(folder)) == 2
    assert_healed(study, folder, whole)


def test_a_store_that_is_gone_is_said_and_made_again(study: Study, whole: Path, folder: Path) -> None:
    for path in folder.glob(f"{STORE_FILE}*"):
        path.unlink()
    with pytest.raises(TiebreakError, match=r"no records\.sqlite"):
        api.open_result(folder)
    said = assert_healed(study, folder, whole)
    assert any(re.search(r"records\.sqlite: missing.*every run is trained again.*looks", line) for line in said)
    assert len(list((folder / DAMAGED).rglob("*.safetensors"))) == 2


def test_a_damaged_page_leaves_the_other_rows(study: Study, whole: Path, folder: Path) -> None:
    path = folder / STORE_FILE
    content = bytearray(path.read_bytes())
    place = content.index(b"train_loss") // 4096 * 4096
    content[place : place + 4096] = bytes(4096)
    path.write_bytes(content)
    assert problems(folder)
    said = assert_healed(study, folder, whole)
    assert any("recovered" in line for line in said)


def test_temporary_files_of_a_killed_run_are_swept(study: Study, folder: Path) -> None:
    parts = [folder / ".plan.json.ab12.part", folder / CHECKPOINTS / ".x.safetensors.ab12.part"]
    for part in parts:
        part.write_bytes(b"half")
    run_here(study, folder)
    assert not any(part.exists() for part in parts)


def test_an_empty_store_of_a_command_killed_at_its_start_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / STORE_FILE).touch()
    assert heal(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_an_untouched_folder_is_left_alone(study: Study, folder: Path) -> None:
    run_here(study, folder)  # the plan names the place of designs.py: the folder has moved
    before = {path: path.read_bytes() for path in folder.glob("*.*") if not path.name.startswith("records")}
    run_here(study, folder)
    assert {path: path.read_bytes() for path in before} == before
    assert not (folder / DAMAGED).exists()


@pytest.mark.parametrize("lost", ["store", "folder"])
def test_a_study_whose_results_vanish_stops_at_once(study: Study, tmp_path: Path, lost: str) -> None:
    folder, ended = tmp_path / "out", list[Message]()

    def listen(message: Message) -> None:
        if isinstance(message, RunEnded):
            ended.append(message)
            for path in folder.glob(f"{STORE_FILE}*"):
                path.unlink()
            if lost == "folder":
                shutil.rmtree(folder)

    with pytest.raises(TiebreakError, match=r"records\.sqlite: removed or replaced.*1 ended run, 2 epochs.*lost"):
        api.run(study, folder, machine=Machine(workers=1, strategy="loop"), listen=listen)
    assert len(ended) == 1


def test_check_beside_a_running_study_raises_no_alarm(study: Study, folder: Path) -> None:
    found, stale = list[str](), 0

    def listen(message: Message) -> None:
        nonlocal stale
        checked = api.check(folder)
        found.extend(checked.problems)
        stale += any(VERDICT_FILE in note and "a study runs here" in note for note in checked.notes)

    machine = Machine(workers=1, strategy="loop")
    api.run(study.changed(seeds=2), folder, machine=machine, listen=listen)
    assert found == []
    assert stale
    assert api.check(folder)[1:] == ([], api.check(folder).what, [])


def test_a_record_that_names_a_file_outside_harms_nothing(study: Study, whole: Path, folder: Path) -> None:
    victim = folder.parent / "victim.txt"
    victim.write_text("mine")
    name = "../../victim.txt"
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection, connection:
        ((rowid, *row),) = connection.execute("SELECT rowid, * FROM checkpoints LIMIT 1").fetchall()
        row[3], row[4] = name, hashlib.sha256(b"another").hexdigest()
        values = (row[3], row[4], row_hash(*row[:5]), rowid)
        connection.execute("UPDATE checkpoints SET file = ?, sha256 = ?, row_sha256 = ? WHERE rowid = ?", values)
    assert any("victim" in line for line in problems(folder))
    assert_healed(study, folder, whole)
    assert victim.read_text() == "mine"


def test_a_damaged_log_of_a_killed_run_is_named_and_healed(study: Study, whole: Path, tmp_path: Path) -> None:
    killed, ended = tmp_path / "killed", list[Message]()

    def listen(message: Message) -> None:
        if isinstance(message, RunEnded):
            ended.append(message)
            if len(ended) == 2:
                shutil.copytree(tmp_path / "out", killed)  # as a kill would leave it

    api.run(study, tmp_path / "out", machine=Machine(workers=1, strategy="loop"), listen=listen)
    log = log_of(killed / STORE_FILE)
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    copy = Path(shutil.copytree(killed, tmp_path / "copy"))
    assert any(f"{log.name}: damaged" in line for line in problems(copy))
    said = assert_healed(study, killed, whole)
    assert any(f"{log.name}: damaged" in line for line in said)
