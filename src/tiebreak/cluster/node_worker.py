"""A worker on a machine of the cluster: does one job at a time, in a thread; the driver asks for its messages.

Checkpoints are written here and travel with the message of their epoch. A new one is sent when the last is
SEND_SECONDS old, and with the end of its run: short epochs would fill the network. No Ray but for getting parcels.
"""

from __future__ import annotations

import platform
import queue
import shutil
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from tiebreak.cluster.parcels import unpack
from tiebreak.cluster.shipping import Kit, Question, Seen, localised
from tiebreak.data.fetch import cache_dir
from tiebreak.drive.device import device_problem
from tiebreak.drive.messages import Abort, EpochDone, Job, Message, Note, RunEnded, decode_job, encode
from tiebreak.errors import TiebreakError, describe_error
from tiebreak.results.checkpoint_file import checkpoint_folder, checkpoint_path
from tiebreak.results.record import CheckpointRecord
from tiebreak.system import cpu_name

SEND_SECONDS = 10.0
MOST_WAITING = 256  # messages that the driver has not asked for: then training waits
BATCH_BYTES = 32 << 20  # of checkpoints in one answer
SCRATCH = "tiebreak-job-"


@dataclass(frozen=True)
class Hello:
    """What a worker says first."""

    host: str
    seen: Seen
    problem: str  # why it cannot work; empty: it can


@dataclass(frozen=True)
class Sent:
    """One message with the checkpoints that it names; or the end of the job, or why the worker cannot go on."""

    line: str = ""  # empty: the job has ended
    files: dict[str, bytes] = field(default_factory=dict)
    broken: str = ""


class NodeWorker:
    """Does jobs. `begin` starts one, `messages` waits for news of it."""

    def __init__(self) -> None:
        _remove_leftovers()
        self._unpacked: dict[str, Path] = {}  # parcels that this worker has compared with their sha256
        self._news: queue.Queue[Sent] = queue.Queue(MOST_WAITING)

    def hello(self, question: Question, device: str) -> Hello:
        """Where this is, what it sees, and whether it can work. Torch is imported here and not by the driver."""
        import tiebreak.drive.worker  # noqa: F401

        return Hello(platform.node(), question.answer(), device_problem(device))

    def begin(self, line: str, kit: Kit) -> None:
        """Start a job."""
        threading.Thread(target=self._work, args=(line, kit), daemon=True).start()

    def messages(self, begun: None = None) -> list[Sent]:
        """The news since the last call; waits for the first. The last of a job has no line."""
        found = [self._news.get()]
        with suppress(queue.Empty):
            while sum(map(_size, found)) < BATCH_BYTES:
                found.append(self._news.get_nowait())
        return found

    def _work(self, line: str, kit: Kit) -> None:
        import torch

        from tiebreak.drive.worker import perform

        torch.set_num_threads(1)  # as in a local worker
        scratch = None if kit.in_place else Path(tempfile.mkdtemp(prefix=f"{SCRATCH}{psutil.Process().pid}-"))
        outbox, end = Outbox(self._news, scratch), Sent()
        try:
            try:
                sent = decode_job(line)
                job = self._prepare(sent, kit, scratch)
            except (TiebreakError, OSError) as error:
                outbox.send(Abort(text=str(error)))
            else:
                if kit.designs is not None:
                    outbox.rename(_folder_of(job), _folder_of(sent))
                perform(job, outbox.send)
        except BaseException as error:  # such as a GPU that no later call can use: another worker goes on
            end = Sent(broken=describe_error(error, None))
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)  # before the driver may end this process
        self._news.put(end)

    def _prepare(self, job: Job, kit: Kit, scratch: Path | None) -> Job:
        """The job with the paths of this machine, and everything at its place."""
        if scratch is not None:
            place = checkpoint_folder(scratch)
            place.mkdir()
            for name, content in kit.checkpoints.items():
                (place / name).write_bytes(content)
        for parcel in filter(None, (kit.designs, kit.data)):
            if parcel.sha256 not in self._unpacked:
                self._unpacked[parcel.sha256] = unpack(parcel, cache_dir() / "cluster", _get)
        designs, data = (self._unpacked[each.sha256] if each else None for each in (kit.designs, kit.data))
        return localised(job, scratch, designs, data)


def _folder_of(job: Job) -> str:
    return str(Path(job.designs_from or "").parent)


def _size(sent: Sent) -> int:
    return sum(map(len, sent.files.values()))


def _get(reference: Any) -> bytes:
    import ray

    return bytes(ray.get(reference))


class Outbox:
    """Sends messages with what the driver needs besides: checkpoints, and on which machine a run was trained."""

    def __init__(self, news: queue.Queue[Sent], scratch: Path | None) -> None:
        self._news, self._scratch = news, scratch  # None: the driver sees the files
        self._sent_at = time.monotonic()
        self._kept: dict[str, list[CheckpointRecord]] = {}  # of each run, written here, newest first
        self._unsent: dict[str, CheckpointRecord] = {}  # the newest of each run, while the driver has not got it
        self._renamed = ("", "")

    def rename(self, here: str, there: str) -> None:
        """Call a folder of this machine as the driver does: a record holds no path of a machine of the cluster."""
        self._renamed = (here, there)

    def _told(self, text: str) -> str:
        here, there = self._renamed
        return text.replace(here, there) if here else text

    def send(self, message: Message) -> None:
        """Send a message."""
        records: list[CheckpointRecord] = []
        if isinstance(message, EpochDone) and self._scratch is not None:
            self._note(message)
            if time.monotonic() - self._sent_at > SEND_SECONDS:
                records = self._take(list(self._unsent))
            message = replace(message, checkpoints=tuple(records))
        elif isinstance(message, RunEnded):
            self._send_last(message.record.identity)
            provenance = {**message.record.provenance, "host": platform.node(), "cpu": cpu_name()}
            reason = self._told(message.record.reason)
            message = replace(message, record=replace(message.record, reason=reason, provenance=provenance))
        elif isinstance(message, Note):
            message = replace(message, text=self._told(message.text))
        elif isinstance(message, Abort):
            message = replace(message, text=f"{platform.node()} of the Ray cluster: {message.text}")
        self._put(message, records)

    def _send_last(self, identity: str) -> None:
        """The last state of a run: it is continued from there, and its exhibits are made of it."""
        if identity in self._unsent:
            records = self._take([identity])
            self._put(EpochDone(records=(), checkpoints=tuple(records)), records)

    def _take(self, identities: list[str]) -> list[CheckpointRecord]:
        self._sent_at = time.monotonic()
        return [self._unsent.pop(identity) for identity in identities]

    def _put(self, message: Message, records: list[CheckpointRecord]) -> None:
        scratch = self._scratch
        contents = {each.file: checkpoint_path(scratch, each).read_bytes() for each in records} if scratch else {}
        self._news.put(Sent(encode(message), contents))

    def _note(self, message: EpochDone) -> None:
        """Take note of new states, and remove all but the last two of each run."""
        assert self._scratch is not None
        for record in message.checkpoints:
            self._unsent[record.identity] = record
            kept = self._kept.setdefault(record.identity, [])
            kept.insert(0, record)
            for old in kept[2:]:
                checkpoint_path(self._scratch, old).unlink(missing_ok=True)
            del kept[2:]


def _remove_leftovers() -> None:
    """Remove what workers left that were killed in the middle of a job."""
    for path in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        pid = path.name.removeprefix(SCRATCH).partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(path, ignore_errors=True)
