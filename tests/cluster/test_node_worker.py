from __future__ import annotations

import platform
import queue
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.made_up import ended
from support.small_study import cohort_job, make_job, one_run, one_thread, write_data
from tiebreak.cluster import node_worker
from tiebreak.cluster.node_worker import SCRATCH, NodeWorker, Outbox, Sent
from tiebreak.cluster.parcels import pack
from tiebreak.cluster.shipping import Kit, Question
from tiebreak.drive.messages import Abort, EpochDone, Job, Message, RunEnded, decode, encode_job
from tiebreak.drive.worker import train
from tiebreak.plan.runs import Run
from tiebreak.results.checkpoint_file import CHECKPOINTS
from tiebreak.train import checkpoint
from tiebreak.train.run_group import make_group

NOTHING = Kit(in_place=False, designs=None, data=None, checkpoints={})


@pytest.fixture(name="data")
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> Iterator[Path]:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with one_thread():
        yield write_data(tmp_path / "data")
    assert not list(temporary.glob(f"{SCRATCH}*"))  # whatever happened


def do(worker: NodeWorker, job: Job, kit: Kit) -> list[Sent]:
    """All news of a job but its end."""
    worker.begin(encode_job(job), kit)
    news = worker.messages()
    while news[-1].line:
        news += worker.messages()
    return news


def test_messages_are_those_of_a_local_worker_with_the_checkpoint_of_the_last_epoch(tmp_path: Path, data: Path) -> None:
    run = one_run(data, epochs=3)
    parcel = pack({f"{run.data}/{run.data}.npz": data / f"{run.data}.npz"}, lambda piece: piece)
    job = replace(make_job(run, tmp_path / "out", data), data_dir="/nowhere", folder="/nowhere")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_worker, "_get", lambda reference: reference)
        *news, end = do(NodeWorker(), job, replace(NOTHING, data=parcel))
    assert not end.broken
    here = list(train(make_job(run, tmp_path / "out", data), lambda message: None))
    found = [decode(sent.line) for sent in news]
    losses = [message.records[0].metrics for message in found if isinstance(message, EpochDone) and message.records]
    assert losses == [message.records[0].metrics for message in here if isinstance(message, EpochDone)]
    sent_files = {name: content for sent in news for name, content in sent.files.items()}
    last = f"{run.identity}-3.safetensors"
    assert sent_files == {last: (tmp_path / "out" / CHECKPOINTS / last).read_bytes()}
    record = found[-1].record if isinstance(found[-1], RunEnded) else None
    assert record is not None
    assert {"host", "cpu"} <= record.provenance.keys()


def test_a_job_continues_from_the_checkpoint_that_came_with_it(tmp_path: Path, data: Path) -> None:
    run = one_run(data, epochs=2)
    begun = list(train(make_job(run, tmp_path / "out", data), lambda message: None))
    first = next(message for message in begun if isinstance(message, EpochDone)).checkpoints[0]
    content = (tmp_path / "out" / CHECKPOINTS / first.file).read_bytes()
    job = replace(make_job(run, tmp_path / "out", data, (first,)), folder="/nowhere")
    news = do(NodeWorker(), job, replace(NOTHING, checkpoints={first.file: content}))
    done = [message for message in map(_decoded, news) if isinstance(message, EpochDone)]
    assert [record.epoch for message in done for record in message.records] == [2]


def _decoded(sent: Sent) -> Message | None:
    return decode(sent.line) if sent.line else None


def test_in_place_nothing_is_copied(tmp_path: Path, data: Path) -> None:
    run = one_run(data, epochs=1)
    news = do(NodeWorker(), make_job(run, tmp_path / "out", data), replace(NOTHING, in_place=True))
    assert not any(sent.files for sent in news)
    assert (tmp_path / "out" / CHECKPOINTS / f"{run.identity}-1.safetensors").is_file()


def test_data_that_cannot_be_found_stops_the_study(tmp_path: Path, data: Path) -> None:
    job = replace(make_job(one_run(data), tmp_path / "out", data), data_dir="/nowhere")
    (message,) = [each for each in map(_decoded, do(NodeWorker(), job, NOTHING)) if each]
    assert isinstance(message, Abort)
    assert "/nowhere" in message.text
    assert platform.node() in message.text


def test_an_error_of_the_worker_itself_is_told(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*given: Any) -> None:
        raise RuntimeError("the GPU fell off")

    monkeypatch.setattr("tiebreak.drive.worker.perform", breaks)
    (last,) = do(NodeWorker(), make_job(one_run(data), tmp_path / "out", data), NOTHING)
    assert "fell off" in last.broken


def test_a_record_holds_no_path_of_the_machine(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = one_run(data)
    (tmp_path / "designs.py").write_text("DESIGNS = {}", "utf-8")
    parcel = pack({"designs.py": tmp_path / "designs.py"}, lambda piece: piece)

    def fails(job: Job, send: Any) -> None:
        send(ended(run, {"status": "failed", "epoch": 0, "reason": f"ValueError: no ({job.designs_from}:7)"}))

    monkeypatch.setattr(node_worker, "_get", lambda reference: reference)
    monkeypatch.setattr("tiebreak.drive.worker.perform", fails)
    job = replace(make_job(run, tmp_path / "out", data), designs_from="/of/the/driver/designs.py")
    message = _decoded(do(NodeWorker(), job, replace(NOTHING, designs=parcel))[0])
    assert isinstance(message, RunEnded)
    assert message.record.reason == "ValueError: no (/of/the/driver/designs.py:7)"


def test_a_worker_says_what_it_sees(tmp_path: Path, data: Path) -> None:
    hello = NodeWorker().hello(Question(str(tmp_path / "token"), "token", {}, ""), "cpu")
    assert not hello.seen.folder
    assert hello.problem == ""


def test_checkpoints_are_sent_now_and_then_and_at_the_end(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    news: queue.Queue[Sent] = queue.Queue()
    outbox, run = Outbox(news, tmp_path), one_run(data, epochs=9)
    state = make_group(cohort_job([run], tmp_path, data)).states[0]

    def epoch(run: Run, number: int) -> list[str]:
        state.epoch = number
        outbox.send(EpochDone(records=(), checkpoints=(checkpoint.save(tmp_path, run, state),)))
        return list(news.get().files)

    assert epoch(run, 1) == []
    clock[0] += node_worker.SEND_SECONDS + 1
    assert epoch(run, 2) == [f"{run.identity}-2.safetensors"]
    assert epoch(run, 3) == []
    outbox.send(ended(run, {"status": "done", "epoch": 3}))
    assert list(news.get().files) == [f"{run.identity}-3.safetensors"]
    assert isinstance(decode(news.get().line), RunEnded)
    kept = {path.name for path in (tmp_path / CHECKPOINTS).iterdir()}
    assert kept == {f"{run.identity}-{number}.safetensors" for number in (2, 3)}


def test_what_a_killed_worker_left_is_removed(tmp_path: Path, data: Path) -> None:
    left = tmp_path / "temporary" / f"{SCRATCH}999999999-abc"
    left.mkdir()
    NodeWorker()
    assert not left.exists()
