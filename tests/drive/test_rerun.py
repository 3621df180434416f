"""A stored run holds everything that is needed to train it again: by itself, in another folder, to the same bits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.job_messages import do
from support.small_study import cohort_job, one_thread, small_study, train_in, write_data
from tiebreak.drive.jobs import StrategyOption
from tiebreak.drive.messages import EpochDone, RunEnded
from tiebreak.plan.runs import PLAN_FILE, Run
from tiebreak.results.store import Store


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Iterator[Path]:
    with one_thread():
        yield write_data(tmp_path / "data")


@pytest.mark.parametrize("strategy", ["loop", "fused"])
def test_a_record_re_runs_from_itself(tmp_path: Path, data: Path, strategy: StrategyOption) -> None:
    folder = tmp_path / "out"
    plan, _ = train_in(folder, data, small_study(epochs=2), strategy=strategy)
    (folder / PLAN_FILE).write_text(plan.model_dump_json())
    with closing(Store.open(folder)) as store:
        records = store.records()
    stored = json.loads((folder / PLAN_FILE).read_text())["runs"]
    for number, (identity, ended) in enumerate(records.runs.items()):
        run = Run.model_validate(stored[identity])
        assert run.identity == identity
        assert ended.provenance["strategy"] == strategy
        job = cohort_job([run], tmp_path / f"again{number}", data, strategy=ended.provenance["strategy"])
        messages = do(job)
        epochs = [record for message in messages if isinstance(message, EpochDone) for record in message.records]
        assert {record.epoch: record.metrics for record in epochs} == {
            epoch: record.metrics for epoch, record in records.epochs[run.trajectory].items()
        }
        (end,) = (message for message in messages if isinstance(message, RunEnded))
        assert (end.record.identity, end.record.status) == (identity, ended.status)
        for final in end.finals:
            before = records.finals[identity][final.evaluation]
            assert final.metrics == before.metrics
            assert {name: values.tobytes() for name, values in final.outcomes.items()} == {
                name: values.tobytes() for name, values in before.outcomes.items()
            }
