from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.small_study import loop_machine, workers_here
from tiebreak import api
from tiebreak.drive.messages import ExhibitsMade, Message, Note, decode, encode
from tiebreak.study.schema import Study

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(scope="module")
def result(
    tiny_study: Callable[..., Study], tiny_data_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> api.Result:
    out = tmp_path_factory.mktemp("show") / "out"
    with workers_here():
        return api.run(
            tiny_study(),
            out,
            machine=loop_machine(tiny_data_dir),
            listen=lambda message: None,
        )


def forget_exhibits(folder: Path) -> None:
    import sqlite3

    with sqlite3.connect(folder / "records.sqlite") as connection:
        connection.execute("DELETE FROM exhibits")
    connection.close()


def test_a_damaged_checkpoint_is_named_and_made_again_for_the_exhibits(
    result: api.Result, tiny_data_dir: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(result.folder, copy)
    forget_exhibits(copy)
    damaged = sorted((copy / "checkpoints").iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    heard: list[Message] = []
    again = api.run(result.study, copy, machine=loop_machine(tiny_data_dir), listen=heard.append)
    assert any(isinstance(message, Note) and damaged.name in message.text for message in heard)
    assert [record.status for record in again.records.runs.values()] == ["done"] * 4
    assert len(again.records.exhibits) == 2  # of the first run of each arm


def test_exhibits_travel_whole(result: api.Result) -> None:
    for identity, exhibits in result.records.exhibits.items():
        message = ExhibitsMade(identity=identity, exhibits=tuple(exhibits.values()))
        back = decode(encode(message))
        assert isinstance(back, ExhibitsMade)
        for before, after in zip(message.exhibits, back.exhibits, strict=True):
            assert before.name == after.name
            assert set(before.arrays) == set(after.arrays)
            for name, array in before.arrays.items():
                np.testing.assert_array_equal(array, after.arrays[name])
                assert array.dtype == after.arrays[name].dtype


def test_a_study_of_any_task_makes_its_exhibits_once(tmp_path: Path) -> None:
    study = Study.load("graph-normalisation").quickened().changed(seeds=1, epochs=1)
    api.run(study, tmp_path / "out", machine=loop_machine(), listen=lambda message: None)
    notes: list[str] = []
    api.run(
        study,
        tmp_path / "out",
        machine=loop_machine(),
        listen=lambda message: notes.append(getattr(message, "text", "")),
    )
    assert not [note for note in notes if "exhibits" in note]
