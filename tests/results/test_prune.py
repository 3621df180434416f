"""What can go from a results folder, and that it is recorded."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from support.damage import graph_study, run_here
from tiebreak import api
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.results.heal import DAMAGED
from tiebreak.results.prune import find_prunable, prune
from tiebreak.results.store import Store


@pytest.fixture(name="result")
def _result(here: None, tmp_path: Path) -> api.Result:
    run_here(graph_study(tmp_path / "mine.py"), tmp_path / "out")
    return api.open_result(tmp_path / "out")


def files(result: api.Result) -> list[Path]:
    return sorted((result.folder / CHECKPOINTS).iterdir())


def test_checkpoints_of_runs_that_are_not_needed_can_go(result: api.Result) -> None:
    first, second = result.plan.runs
    found = find_prunable(result.folder, result.plan, result.records, [first])
    assert [record.identity for record in found.checkpoints] == [second]
    assert (found.kept, found.damaged, found.stray) == (1, None, ())
    before = sum(path.stat().st_size for path in files(result))
    prune(result.folder, found)
    assert before - sum(path.stat().st_size for path in files(result)) == found.total > 0
    with closing(Store.open(result.folder)) as store:
        assert {record.identity: record.pruned for record in store.checkpoints()} == {first: False, second: True}
    assert api.check(result.folder).problems == []
    assert find_prunable(result.folder, result.plan, result.records, [first]).total == 0


def test_a_run_that_has_not_ended_keeps_its_checkpoint(result: api.Result) -> None:
    identity = next(iter(result.plan.runs))
    with closing(Store.create(result.folder)) as store, store.transaction():
        store.drop_run(identity)
    records = api.open_result(result.folder).records
    found = find_prunable(result.folder, result.plan, records, [])
    assert identity not in [record.identity for record in found.checkpoints]
    assert found.kept == 1


def test_a_run_that_lacks_an_evaluation_keeps_its_checkpoint(result: api.Result) -> None:
    identity = next(iter(result.plan.runs))
    records = result.records
    finals = {key: value for key, value in records.finals.items() if key != identity}
    found = find_prunable(result.folder, result.plan, replace(records, finals=finals), [])
    assert identity not in [record.identity for record in found.checkpoints]


def test_files_without_a_record_and_damaged_files_can_go(result: api.Result) -> None:
    (result.folder / CHECKPOINTS / "left.safetensors").write_bytes(b"12345")
    (result.folder / DAMAGED / "1").mkdir(parents=True)
    (result.folder / DAMAGED / "1" / "plan.json").write_bytes(b"123")
    found = find_prunable(result.folder, result.plan, result.records, list(result.plan.runs))
    assert (found.checkpoints, found.stray_bytes, found.damaged_bytes) == ((), 5, 3)
    prune(result.folder, found)
    assert len(files(result)) == 2
    assert not (result.folder / DAMAGED).exists()
