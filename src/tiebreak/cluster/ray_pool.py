"""Workers on the machines of a Ray cluster: jobs go out, messages come in. The same interface as `drive.local_workers`.

Each worker is an actor on a machine that this pool chose; it is asked for messages, and answers when there are some.
When an actor is lost, its job goes to another one, from the last checkpoint that the driver has stored. Machines that
join late get workers. A job is given only to a worker that has answered: one that Ray cannot place holds up nobody.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import ray
from ray.exceptions import ActorUnavailableError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tiebreak.cluster.capacity import Demand, demand
from tiebreak.cluster.node_watch import NodeWatch
from tiebreak.cluster.node_worker import Hello, NodeWorker, Sent
from tiebreak.cluster.ray_connection import alive_nodes, connected
from tiebreak.cluster.shipping import Question, Seen, Supplies, read_checkpoints, write_checkpoint
from tiebreak.drive.assignment import MOST_DEATHS, Assignment
from tiebreak.drive.messages import EpochDone, Job, Message, Note, decode, encode_job
from tiebreak.plan.runs import Plan
from tiebreak.text import one_line

if TYPE_CHECKING:
    from tiebreak.drive.machine import Machine

WAIT_SECONDS = 1.0  # for news, before looking at the machines again


@dataclass(eq=False)
class Worker:
    """An actor on a machine. `reply` is its next answer: to the greeting, then news of its job; None: it is idle."""

    actor: Any
    node: str
    reply: Any
    seen: Seen | None = None  # None: it has not answered yet
    assignment: Assignment | None = None


class RayPool:
    """Workers of a cluster, started when they are needed and reused. Leaving the pool stops them."""

    _watch: NodeWatch
    _demand: Demand  # of a worker
    _question: Question  # to each worker: which files of the driver it sees

    def __init__(self, plan: Plan, folder: Path, machine: Machine) -> None:
        self._plan, self._folder, self._machine = plan, folder, machine
        self._supplies = Supplies(plan, folder, machine.data_dir, ray.put)
        self._stack = ExitStack()
        self._failures: Counter[str] = Counter()  # of workers that did not start, by machine
        self._workers: list[Worker] = []

    def __enter__(self) -> Self:
        """Connect, unless there is a connection. No worker is started before there is work."""
        self._stack.enter_context(connected(self._machine.on, self._machine.device))
        self._question = self._stack.enter_context(self._supplies.question())
        self._watch = NodeWatch()
        resources = [node["Resources"] for node in self._watch.nodes.values()]
        self._demand = demand(self._plan, self._machine.device, self._machine.workers, resources)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop every worker, idle or not."""
        self._stop(self._workers)
        self._stack.close()

    @property
    def slots(self) -> int:
        """How many jobs can run at a time."""
        room = sum(self._watch.room(self._demand).values())
        return max(1, room if self._machine.workers is None else min(room, self._machine.workers))

    def run(self, jobs: Sequence[Job], at_most: int | None = None) -> Generator[list[Message], None, None]:
        """The messages of all jobs in the order of their arrival, those together that came together.

        `at_most` limits the number of workers of a machine. Closing the iterator stops the workers that have an
        unfinished job.
        """
        waiting = [Assignment(job) for job in reversed(jobs)]
        try:
            while waiting or self._busy():
                yield list(self._watch.look(self._jobs()))
                self._start(len(waiting) + len(self._busy()), at_most)
                yield list(self._give(waiting, at_most))
                yield from self._receive(waiting)
            yield list(self._watch.look({}, now=True))  # all machines are idle
        finally:
            self._stop(self._busy())

    def _busy(self) -> list[Worker]:
        return [worker for worker in self._workers if worker.assignment is not None]

    def _jobs(self) -> Counter[str]:
        """How many jobs run on each machine."""
        return Counter(worker.node for worker in self._busy())

    def _start(self, wanted: int, at_most: int | None) -> None:
        """Start workers until there are as many as wanted, each on the machine with the most room."""
        cap = wanted if self._machine.workers is None else min(wanted, self._machine.workers)
        taken = Counter(worker.node for worker in self._workers)
        room = {
            key: min(fits, at_most or math.inf) - taken[key] for key, fits in self._watch.room(self._demand).items()
        }
        while len(self._workers) < cap and room:
            key = max(room, key=lambda each: room[each])
            if room[key] <= 0:
                return
            room[key] -= 1
            self._workers.append(self._new_worker(key))

    def _new_worker(self, node: str) -> Worker:
        actor = (
            ray.remote(NodeWorker)
            .options(
                num_cpus=self._demand.cpus,
                num_gpus=self._demand.gpus,
                memory=self._demand.memory,
                max_restarts=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            )
            .remote()
        )
        return Worker(actor, node, actor.hello.remote(self._question, self._machine.device))

    def _give(self, waiting: list[Assignment], at_most: int | None) -> Iterator[Message]:
        """Give jobs to workers that have none."""
        jobs = self._jobs()
        for worker in self._workers:
            seen = worker.seen
            if not waiting or worker.reply is not None or seen is None or jobs[worker.node] >= (at_most or math.inf):
                continue
            worker.assignment = waiting.pop()
            jobs[worker.node] += 1
            job, contents, notes = self._supplies.absolute(worker.assignment.job), dict[str, bytes](), list[str]()
            if not seen.folder:
                job, contents, notes = read_checkpoints(job)
            begun = worker.actor.begin.remote(encode_job(job), self._supplies.kit(seen, contents))
            worker.reply = worker.actor.messages.remote(begun)  # an error at the beginning is the first answer
            yield from (Note(text=text) for text in notes)

    def _receive(self, waiting: list[Assignment]) -> Iterator[list[Message]]:
        """The next messages, of every worker that has some."""
        replies = {worker.reply: worker for worker in self._workers if worker.reply is not None}
        if not replies:
            time.sleep(WAIT_SECONDS)  # no machine is left: another may join
            return
        if ray.wait(list(replies), timeout=WAIT_SECONDS)[0]:
            ready, _ = ray.wait(list(replies), num_returns=len(replies), timeout=0)
        else:
            ready = []
        for reference in ready:
            worker = replies[reference]
            if worker not in self._workers:
                continue  # stopped a moment ago, with its machine
            try:
                answer = ray.get(reference)
            except RayError as error:
                if isinstance(error, ActorUnavailableError):
                    self._watch.set_away(worker.node)
                yield list(self._lost(worker, waiting, _why(error)))
                continue
            if isinstance(answer, Hello):
                worker.seen, worker.reply = answer.seen, None
                if answer.problem:
                    yield [self._refuse(worker.node, answer.problem)]
            else:
                yield from self._news(worker, answer, waiting)

    def _news(self, worker: Worker, news: list[Sent], waiting: list[Assignment]) -> Iterator[list[Message]]:
        """The messages of a worker, whose checkpoints are written first."""
        ended, broken = not news[-1].line, news[-1].broken
        worker.reply = None if ended else worker.actor.messages.remote()  # while this is stored, the next comes
        assignment = worker.assignment
        assert assignment is not None
        messages = []
        for sent in news[:-1] if ended else news:
            message = decode(sent.line)
            if isinstance(message, EpochDone):
                for record in message.checkpoints if sent.files else ():
                    write_checkpoint(self._folder, record, sent.files[record.file])
            messages.append(message)
        yield messages  # the driver has stored them when it asks for more
        for message in messages:
            assignment.note(message)
        if broken:
            yield list(self._lost(worker, waiting, f"cannot go on: {broken}"))
        elif ended:
            worker.assignment = None

    def _lost(self, worker: Worker, waiting: list[Assignment], reason: str) -> Iterator[Message]:
        """Clean up after a worker: its job waits again, unless it has failed."""
        assignment, worker.assignment = worker.assignment, None
        self._stop([worker])
        gone = self._watch.is_away(worker.node) or worker.node not in {each["NodeID"] for each in alive_nodes()}
        if assignment is not None:
            what = f"was lost with machine {self._watch.names[worker.node]}" if gone else reason
            yield from assignment.note_death(what, machine_lost=gone)
            if not assignment.finished:
                waiting.append(assignment)
        elif not gone:
            self._failures[worker.node] += 1
            if self._failures[worker.node] == MOST_DEATHS:
                yield self._refuse(worker.node, f"workers do not start there: {reason}")
        yield from self._watch.look(self._jobs(), now=True)

    def _refuse(self, node: str, problem: str) -> Message:
        self._stop([worker for worker in self._workers if worker.node == node and worker.assignment is None])
        return self._watch.refuse(node, problem, self._demand)

    def _stop(self, workers: Sequence[Worker]) -> None:
        for worker in list(workers):
            self._workers.remove(worker)
            ray.kill(worker.actor)


def _why(error: RayError) -> str:
    """How an actor ended, from the last line of what Ray says."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if lines else type(error).__name__
    detail = (text.partition("Worker exit detail: ")[2] or text).partition(". Some common causes")[0]
    if "connection error" in detail:  # all that Ray knows of a process that ended without a word
        return "ended: killed (out of memory?), crashed, or left by its design"
    memory = " (out of memory?)" if "memory" in detail.lower() else ""
    return f"died{memory}: {one_line(detail, 160)}"
