from __future__ import annotations

from pathlib import Path

import pytest

from support.made_up import ended, epoch_done, state
from support.small_study import cohort_job, one_run, write_data
from tiebreak.drive.assignment import MOST_DEATHS, MOST_MACHINES, Assignment
from tiebreak.drive.messages import Note, Progress, RunEnded
from tiebreak.plan.runs import Run


@pytest.fixture(name="runs", scope="module")
def _runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    run = one_run(write_data(tmp_path_factory.mktemp("data")), epochs=5)
    return [run.model_copy(update={"seed": seed}) for seed in range(3)]


def left(assignment: Assignment) -> list[str]:
    return [Run.model_validate(content).identity for content in assignment.job.runs]


def test_a_job_is_sent_as_it_is_until_a_worker_dies(runs: list[Run], tmp_path: Path) -> None:
    job = cohort_job(runs, tmp_path, tmp_path)
    assignment = Assignment(job)
    assignment.note(epoch_done(runs[0], 1))
    assert assignment.job is job
    assert not assignment.finished


def test_the_rest_of_a_job_continues_from_the_last_two_recorded_checkpoints(runs: list[Run], tmp_path: Path) -> None:
    saved = ((), (state(runs[1], 1),), ())
    assignment = Assignment(cohort_job(runs, tmp_path, tmp_path, checkpoints=saved))
    for epoch in (1, 2, 3):
        assignment.note(epoch_done(runs[2], epoch))
    assignment.note(Progress(identities=(), epochs=3.5, rate=1.0))
    assignment.note(ended(runs[0], {"status": "done", "epoch": 5}))
    (note,) = assignment.note_death("was killed by signal 9")
    assert isinstance(note, Note)
    assert runs[1].label in note.text
    assert "signal 9" in note.text
    assert "2 of 3" in note.text
    assert left(assignment) == [runs[1].identity, runs[2].identity]
    assert assignment.job.checkpoints == ((state(runs[1], 1),), (state(runs[2], 3), state(runs[2], 2)))


def test_after_the_last_attempt_what_has_not_ended_fails(runs: list[Run], tmp_path: Path) -> None:
    assignment = Assignment(cohort_job(runs, tmp_path, tmp_path))
    assignment.note(epoch_done(runs[1], 2))
    assignment.note(ended(runs[0], {"status": "done", "epoch": 5}))
    for _ in range(MOST_DEATHS - 1):
        assert [type(message) for message in assignment.note_death("died")] == [Note]
    messages = list(assignment.note_death("died"))
    found = [message.record for message in messages if isinstance(message, RunEnded)]
    assert [(record.identity, record.status, record.epoch) for record in found] == [
        (runs[1].identity, "failed", 2),
        (runs[2].identity, "failed", 0),
    ]
    assert all("died" in record.reason for record in found)
    assert assignment.finished


def test_a_job_whose_runs_have_all_ended_needs_no_other_worker(runs: list[Run], tmp_path: Path) -> None:
    assignment = Assignment(cohort_job(runs[:1], tmp_path, tmp_path))
    assignment.note(ended(runs[0], {"status": "done", "epoch": 5}))
    assert list(assignment.note_death("died")) == []
    assert assignment.finished


def test_exhibits_that_cannot_be_made_fail_no_run(runs: list[Run], tmp_path: Path) -> None:
    assignment = Assignment(cohort_job(runs[:1], tmp_path, tmp_path, work="exhibits"))
    messages = [message for _ in range(MOST_DEATHS) for message in assignment.note_death("died")]
    assert [type(message) for message in messages] == [Note] * MOST_DEATHS
    assert "no exhibits" in getattr(messages[-1], "text", "")
    assert assignment.finished


def test_machines_that_are_lost_are_not_the_fault_of_the_job(runs: list[Run], tmp_path: Path) -> None:
    assignment = Assignment(cohort_job(runs, tmp_path, tmp_path))
    for _ in range(MOST_MACHINES - 1):
        assert [type(message) for message in assignment.note_death("was lost", machine_lost=True)] == [Note]
    assert not assignment.finished
    (first, *_) = assignment.note_death("was lost", machine_lost=True)
    assert isinstance(first, RunEnded)
    assert f"{MOST_MACHINES} times" in first.record.reason
    assert assignment.finished
