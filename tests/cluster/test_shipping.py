from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from support.made_up import state
from support.small_study import cohort_job, one_arm, one_run, write_data
from tiebreak.cluster.shipping import (
    TOKEN_FILE,
    Seen,
    Supplies,
    data_roots,
    design_roots,
    localised,
    read_checkpoints,
    write_checkpoint,
)
from tiebreak.errors import TiebreakError
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Run
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.train import checkpoint
from tiebreak.train.run_group import make_group


@pytest.fixture(name="data", scope="module")
def _data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


def supplies(data: Path, folder: Path) -> Supplies:
    return Supplies(make_plan(one_arm(), data), folder, data, len)


def test_a_machine_that_reads_the_token_uses_the_files_in_place(data: Path, tmp_path: Path) -> None:
    ours = supplies(data, tmp_path)
    with ours.question() as question:
        assert question.answer() == Seen(folder=True, data=True)
        assert replace(question, token="another").answer() == Seen(folder=False, data=False)
        assert replace(question, data_stamp="another").answer() == Seen(folder=True, data=False)
        assert replace(question, token_file="/nowhere/token").answer() == Seen(folder=False, data=False)
    assert not (tmp_path / TOKEN_FILE).exists()


def test_a_kit_holds_what_the_machine_does_not_see_and_is_packed_once(data: Path, tmp_path: Path) -> None:
    ours = supplies(data, tmp_path)
    assert ours.kit(Seen(folder=True, data=True), {"a": b"1"}).data is None
    kit = ours.kit(Seen(folder=False, data=False), {"a": b"1"})
    assert kit.checkpoints == {"a": b"1"}
    assert kit.designs is None  # there are none of the user's
    assert kit.data is ours.kit(Seen(folder=True, data=False), {}).data
    assert kit.data is not None


def test_designs_travel_with_the_modules_beside_them(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text("import mine.layers\n\nDESIGNS = {}\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "layers.py").write_text("")
    (tmp_path / "other.py").write_text("")
    found = design_roots(str(tmp_path / "nets.py"))
    assert found == {"designs.py": tmp_path / "nets.py", "mine/layers.py": tmp_path / "mine" / "layers.py"}
    assert design_roots(None) == {}


def test_embedded_data_needs_nothing_and_other_data_its_files(data: Path) -> None:
    assert data_roots("mnist5k", None) == {}
    file = (data / "pneumoniamnist.npz").resolve()
    assert data_roots("pneumoniamnist", data) == {"pneumoniamnist/pneumoniamnist.npz": file}
    assert data_roots(str(data), None) == {data.resolve().name: data.resolve()}


def test_paths_of_the_driver_are_replaced_and_identities_stay(data: Path, tmp_path: Path) -> None:
    run = one_run(data).model_copy(update={"data": "/home/user/own.npz"})
    job = cohort_job([run], tmp_path / "out", data, designs_from="/home/user/designs.py", checksums="/home/user/sums")
    (tmp_path / "parcel").mkdir()
    (tmp_path / "parcel" / "own.npz").touch()
    there = localised(job, tmp_path / "scratch", tmp_path / "designs", tmp_path / "parcel")
    assert there.folder == str(tmp_path / "scratch")
    assert there.designs_from == str(tmp_path / "designs" / "designs.py")
    (moved,) = [Run.model_validate(content) for content in there.runs]
    assert moved.data == str(tmp_path / "parcel" / "own.npz")
    assert moved.identity == run.identity
    assert moved.cohort == run.cohort


def test_a_data_set_is_found_in_its_parcel(data: Path, tmp_path: Path) -> None:
    run = one_run(data)
    (tmp_path / "parcel" / run.data).mkdir(parents=True)
    content = (data / f"{run.data}.npz").read_bytes()
    (tmp_path / "parcel" / run.data / f"{run.data}.npz").write_bytes(content)
    there = localised(cohort_job([run], tmp_path / "out", data), None, None, tmp_path / "parcel")
    assert make_group(there).data.checksum == run.checksum


def test_only_the_furthest_intact_checkpoint_of_a_run_travels(data: Path, tmp_path: Path) -> None:
    run = one_run(data)
    first = make_group(cohort_job([run], tmp_path, data)).states[0]
    older = checkpoint.save(tmp_path, run, first)
    first.epoch = 1
    newer = checkpoint.save(tmp_path, run, first)
    job = cohort_job([run], tmp_path, data, checkpoints=((newer, older),))
    sent, contents, notes = read_checkpoints(job)
    assert (sent.checkpoints, list(contents), notes) == (((newer,),), [newer.file], [])
    (tmp_path / CHECKPOINTS / newer.file).write_bytes(b"damaged")
    sent, contents, notes = read_checkpoints(job)
    assert (sent.checkpoints, list(contents)) == (((older,),), [older.file])
    assert "the one before" in notes[0]
    (tmp_path / CHECKPOINTS / older.file).unlink()
    sent, contents, notes = read_checkpoints(job)
    assert (sent.checkpoints, contents, len(notes)) == (((),), {}, 2)


def test_a_checkpoint_is_written_only_with_the_sha256_of_its_record(data: Path, tmp_path: Path) -> None:
    record = replace(state(one_run(data), 1), file="a.safetensors", sha256=hashlib.sha256(b"right").hexdigest())
    with pytest.raises(TiebreakError, match="sha256"):
        write_checkpoint(tmp_path, record, b"wrong")
    assert not list(tmp_path.iterdir())
    write_checkpoint(tmp_path, record, b"right")
    assert (tmp_path / CHECKPOINTS / record.file).read_bytes() == b"right"
    with pytest.raises(TiebreakError, match="removed"):
        write_checkpoint(tmp_path / "gone", record, b"right")
    with pytest.raises(TiebreakError, match="name of a file"):
        write_checkpoint(tmp_path, replace(record, file="../out"), b"right")
