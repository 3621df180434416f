"""Which verdicts count as looks, and that a folder of an older version has had one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support import hand_made
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan
from tiebreak.results.look_history import looks_at, looks_before, looks_kept, planned_end, record_look
from tiebreak.results.migration import APPLICATION, SCHEMA_VERSION
from tiebreak.results.record import LookRecord, RunRecord
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.study.schema import Study


def end_runs(store: Store, study: Study, count: int | None = None) -> None:
    with store.transaction():
        for run in list(hand_made.plan(study).runs.values())[:count]:
            store.add_run(RunRecord(identity=run.identity, trajectory=run.trajectory, status="failed", epoch=1))


def test_a_look_is_a_verdict_on_all_runs(tmp_path: Path) -> None:
    study = hand_made.study(seeds=6)
    plan = hand_made.plan(study)
    with closing(Store.create(tmp_path)) as store:
        end_runs(store, study, count=20)
        record_look(store, study, plan, 6)
        assert store.looks() == ()  # not final
        end_runs(store, study)
        record_look(store, study, plan, 7)
        assert store.looks() == ()  # six seeds cannot decide
        record_look(store, study, plan, 6)
        record_look(store, study, plan, 6)
        assert [(look.seeds, look.end) for look in store.looks()] == [(6, 6)]
        more = hand_made.study(seeds=9)
        end_runs(store, more)
        record_look(store, more, hand_made.plan(more), 6)
        assert [(look.seeds, look.end) for look in store.records().looks] == [(6, 6), (9, 6)]
        assert store.damage() == []


def test_a_damaged_look_is_said_to_be_lost(tmp_path: Path) -> None:
    study = hand_made.study(seeds=6)
    with closing(Store.create(tmp_path)) as store:
        end_runs(store, study)
        record_look(store, study, hand_made.plan(study), 6)
    with closing(sqlite3.connect(tmp_path / STORE_FILE)) as connection, connection:
        connection.execute("UPDATE looks SET seeds = 7")
    with closing(Store.create(tmp_path)) as store, store.transaction():
        (line,) = store.set_aside()
        assert "no longer counts as a look" in line
        assert store.looks() == ()


def test_a_look_after_failed_runs_were_tried_again_is_another_one(tmp_path: Path) -> None:
    study = hand_made.study(seeds=8)
    plan = hand_made.plan(study)
    pool = {plan.arm("pool").run(setting, 7) for arm in study.arms for setting in study.settings(arm)}

    def end(store: Store, failed: set[str]) -> list[dict[str, int]]:
        for status in ("failed", "diverged"):  # a failure is not stored over what has ended
            with store.transaction():
                for name, run in plan.runs.items():
                    if (name in failed) == (status == "failed"):
                        store.add_run(RunRecord(identity=name, trajectory=run.trajectory, status=status, epoch=1))
        record_look(store, study, plan, 6)
        record_look(store, study, plan, 6)
        return [dict(look.pairs) for look in store.looks()]

    with closing(Store.create(tmp_path)) as store:
        assert end(store, pool) == [{"pool vs strided": 7}]
        assert end(store, set()) == [{"pool vs strided": 7}, {}]
        earlier, ended = store.looks(), store.training_state().runs
        assert [looks_before(study, plan, earlier[:k], ended) for k in (1, 2)] == [earlier[:1]] * 2
        assert (len(store.records().looks), store.damage()) == (2, [])
    assert looks_kept(tmp_path, study, plan).startswith("the look at 8 still counts")


def test_a_look_at_which_too_few_seeds_had_scores_is_no_further_one_later(tmp_path: Path) -> None:
    """All runs of an arm fail, its error is mended: nothing could be decided before."""
    study = hand_made.study(seeds=8)
    plan = hand_made.plan(study)
    with closing(Store.create(tmp_path)) as store:
        end_runs(store, study)
        record_look(store, study, plan, 6)
        assert [dict(look.pairs) for look in store.looks()] == [{}]


def test_a_study_that_shares_a_run_goes_on_with_the_looks() -> None:
    study = hand_made.study(seeds=6)
    first = hand_made.plan(study).arms[0].run({"lr": 0.1}, 0)
    look = LookRecord(runs=(first, "gone"), seeds=6, end=6)
    wider = hand_made.study(seeds=9, grid={"lr": [0.1, 0.01, 0.001]})
    assert looks_at(wider, hand_made.plan(wider), [look]) == (look,)
    longer = hand_made.study(seeds=9, epochs=5, grid={"lr": [0.3]})
    assert looks_at(longer, hand_made.plan(longer), [look]) == ()
    assert (planned_end(wider, [look]), planned_end(wider, [])) == (6, 9)
    assert planned_end(hand_made.study(seeds=6, until_decided={"max_seeds": 40}), []) == 40


def with_changed_code(plan: Plan) -> Plan:
    """The plan of the same study by another version of Tiebreak, or with changed designs."""
    runs = [run.model_copy(update={"source": "changed", "comparability": 99}) for run in plan.runs.values()]
    names = dict(zip(plan.runs, [run.identity for run in runs], strict=True))
    arms = [
        arm.model_copy(update={"runs": {key: names[identity] for key, identity in arm.runs.items()}})
        for arm in plan.arms
    ]
    return plan.model_copy(update={"arms": tuple(arms), "runs": {run.identity: run for run in runs}})


def test_looks_survive_a_change_of_the_code(tmp_path: Path) -> None:
    study = hand_made.study(seeds=6)
    plan, more = hand_made.plan(study), hand_made.study(seeds=9)
    changed = with_changed_code(hand_made.plan(more))
    assert not plan.runs.keys() & changed.runs.keys()
    with closing(Store.create(tmp_path)) as store:
        end_runs(store, study)
        record_look(store, study, plan, 6)
        assert [(look.seeds, look.end) for look in looks_at(more, changed, store.looks())] == [(6, 6)]
        longer = hand_made.study(seeds=6, epochs=5)
        assert looks_at(longer, with_changed_code(hand_made.plan(longer)), store.looks()) == ()
    assert looks_kept(tmp_path, more, changed).startswith("the look at 6 still counts")


def test_looks_of_an_older_version_get_the_names_that_last(tmp_path: Path) -> None:
    study = hand_made.study(seeds=6)
    plan = hand_made.plan(study)
    run = plan.arms[0].run({"lr": 0.1}, 0)
    with closing(Store.create(tmp_path)) as store:
        end_runs(store, study)
        with store.transaction():
            for seeds in (14, 6):
                store.add_look(LookRecord(runs=(run,), seeds=seeds, end=14))
        assert looks_at(study, with_changed_code(plan), store.looks()) == ()
        for _ in range(2):
            record_look(store, study, plan, 6)
            found = looks_at(study, with_changed_code(plan), store.looks())
            assert [(look.seeds, look.end) for look in found] == [(14, 14), (6, 14)], "in the order of time"
            assert len(store.looks()) == 4


def test_a_store_of_schema_2_is_read_and_gets_the_table(tmp_path: Path) -> None:
    Store.create(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / STORE_FILE)) as connection:
        for table in ("looks", "step_times"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA user_version=2")
        connection.execute(f"PRAGMA application_id={APPLICATION + 2}")
    with closing(Store.open(tmp_path)) as store:
        assert (store.looks(), store.records().looks, store.damage()) == ((), (), [])
    with closing(Store.create(tmp_path)) as store:
        assert store.schema == SCHEMA_VERSION
        assert (store.looks(), store.step_times()) == ((), {})


def test_a_row_that_is_no_look_is_refused(tmp_path: Path) -> None:
    with closing(Store.create(tmp_path)) as store, store.transaction():
        store.add_look(LookRecord(runs=("run",), seeds=6, end=0))
    with closing(Store.open(tmp_path)) as store, pytest.raises(TiebreakError, match=r"table looks.*end"):
        store.looks()
