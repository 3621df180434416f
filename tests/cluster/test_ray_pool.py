"""A real Ray cluster of several nodes on this machine. The numbers are those of local workers, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.small_study import contents, epochs_in, small_study, train_in, train_plan, write_data
from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import ClusterState, EpochDone, Message, Note, RunEnded
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan
from tiebreak.study.schema import Study

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
]


@pytest.fixture(scope="module", name="cluster")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from support.ray_cluster import started

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIEBREAK_CACHE", str(tmp_path_factory.mktemp("cache")))  # of the nodes
        with started(2) as cluster:
            yield cluster


@pytest.fixture(name="data")
def _data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data")


@pytest.fixture(name="hidden")
def _hidden() -> Iterator[None]:
    from support.ray_cluster import hidden_files

    with hidden_files():
        yield


def on_ray(plan: Plan, folder: Path, data: Path | None, listen: Any = None, **more: Any) -> list[Message]:
    """Train the plan on the cluster. Every message."""
    heard: list[Message] = []

    def hear(message: Message) -> None:
        heard.append(message)
        if listen is not None:
            listen(message)

    folder.mkdir(exist_ok=True)
    machine = Machine(data_dir=data, on="ray", **{"strategy": "loop", **more})
    train_plan(plan, folder, machine, hear)
    return heard


def notes(messages: list[Message]) -> str:
    return "\n".join(message.text for message in messages if isinstance(message, Note))


@pytest.mark.usefixtures("cluster", "hidden")
def test_records_and_checkpoints_are_those_of_local_workers(tmp_path: Path, data: Path) -> None:
    plan, _ = train_in(tmp_path / "local", data, small_study())
    heard = on_ray(plan, tmp_path / "ray", data)
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    ended = [message.record for message in heard if isinstance(message, RunEnded)]
    assert all({"host", "cpu"} <= record.provenance.keys() for record in ended)
    first = next(message for message in heard if isinstance(message, ClusterState))
    assert [machine.cores for machine in first.machines] == [1, 1]


OWN = """
from layers_of_mine import Flat

DESIGNS = {"mine": Flat}
"""
HELPER = """
from pathlib import Path

from torch import nn


class Flat(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.out = nn.Linear(shape.channels * shape.height * shape.width, shape.classes)

    def forward(self, images):
        return self.out(images.flatten(1))
"""


def own_study(folder: Path) -> Study:
    """A user's designs with a helper module, and a user's data in a file."""
    folder.mkdir()
    (folder / "designs.py").write_text(OWN, "utf-8")
    (folder / "layers_of_mine.py").write_text(HELPER, "utf-8")
    write_data(folder / "data")
    (folder / "data" / "pneumoniamnist.npz").rename(folder / "own.npz")
    arms = [{"name": "pool", "design": "cnn-pool"}, {"name": "mine", "design": "mine"}]
    return small_study(
        data=str(folder / "own.npz"),
        designs_from=str(folder / "designs.py"),
        arms=arms,
        comparisons=[{"a": "pool", "b": "mine"}],
        epochs=2,
    )


@pytest.mark.usefixtures("cluster", "hidden")
def test_own_designs_and_data_reach_the_nodes_when_their_paths_mean_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiebreak.cluster.ray_pool import RayPool

    plan, _ = train_in(tmp_path / "local", tmp_path, own_study(tmp_path / "mine"))
    enter = RayPool.__enter__

    def packed(pool: RayPool) -> RayPool:
        enter(pool)
        pool._supplies._parcel("designs", pool._supplies._designs)
        pool._supplies._parcel("data", pool._supplies._data)
        (tmp_path / "mine").rename(tmp_path / "elsewhere")
        return pool

    monkeypatch.setattr(RayPool, "__enter__", packed)
    on_ray(plan, tmp_path / "ray", None)
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


@pytest.mark.usefixtures("hidden")
def test_a_node_that_dies_costs_no_record(cluster: Any, tmp_path: Path, data: Path) -> None:
    plan, _ = train_in(tmp_path / "local", data, small_study(epochs=6, seeds=3))
    node = cluster.add_node(num_cpus=1)
    removed: list[Any] = []

    def remove(message: Message) -> None:
        machines = message.machines if isinstance(message, ClusterState) and not removed else ()
        if any(machine.jobs and node.node_id[:6] in machine.name for machine in machines):
            removed.append(node)
            cluster.remove_node(node, allow_graceful=False)

    heard = on_ray(plan, tmp_path / "ray", data, remove)
    assert removed
    assert "lost machine" in notes(heard)
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")
    last = [message for message in heard if isinstance(message, ClusterState)][-1]
    assert [machine.alive for machine in last.machines].count(False) == 1


MEETING = """
import sys, time
from pathlib import Path

from torch import nn

HERE = Path(__file__).parent


class Meets(nn.Module):
    def __init__(self, shape, own=0):
        super().__init__()
        self.own, self.deadline = own, time.monotonic() + 300
        self.out = nn.Linear(shape.channels * shape.height * shape.width, shape.classes)

    def forward(self, images):
        in_cluster = "default_worker" in sys.argv[0]
        if self.training and in_cluster:
            (HERE / f"here-{self.own}").touch()
            while len(list(HERE.glob("here-*"))) < 2:
                if time.monotonic() > self.deadline:
                    raise RuntimeError("nobody else came")
                time.sleep(0.1)
        return self.out(images.flatten(1))


DESIGNS = {"meets": Meets}
"""


def own_design(folder: Path, text: str, arms: list[dict[str, Any]]) -> Study:
    (folder / "nets.py").write_text(text, "utf-8")
    names = [arm["name"] for arm in arms]
    return small_study(
        designs_from=str(folder / "nets.py"), arms=arms, comparisons=[{"a": names[0], "b": names[1]}], seeds=1
    )


def test_a_node_that_joins_late_gets_work(tmp_path: Path, data: Path) -> None:
    """Two runs that wait for each other: with one core they would wait for ever."""
    from support.ray_cluster import started

    arms = [{"name": name, "design": "meets", "build": {"own": own}} for own, name in enumerate(("a", "b"))]
    plan = make_plan(own_design(tmp_path, MEETING, arms), data)
    with started(1) as cluster:
        joined: list[Any] = []

        def join(message: Message) -> None:
            busy = isinstance(message, ClusterState) and message.machines[0].jobs
            if busy and not joined:
                joined.append(cluster.add_node(num_cpus=1))

        heard = on_ray(plan, tmp_path / "ray", data, join)
    assert "has joined" in notes(heard)
    assert {message.record.status for message in heard if isinstance(message, RunEnded)} == {"done"}


KILLING = """
import os, signal, sys

from torch import nn


class Kills(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.out = nn.Linear(shape.channels * shape.height * shape.width, shape.classes)

    def forward(self, images):
        if self.training and "default_worker" in sys.argv[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.out(images.flatten(1))


DESIGNS = {"kills": Kills}
"""


@pytest.mark.usefixtures("cluster")
def test_a_job_that_kills_its_worker_three_times_fails_and_others_go_on(tmp_path: Path, data: Path) -> None:
    arms = [{"name": "kills", "design": "kills"}, {"name": "pool", "design": "cnn-pool"}]
    plan = make_plan(own_design(tmp_path, KILLING, arms), data)
    heard = on_ray(plan, tmp_path / "ray", data)
    records = [message.record for message in heard if isinstance(message, RunEnded)]
    ended = {plan.runs[record.identity].design: record for record in records}
    assert ended["cnn-pool"].status == "done"
    assert ended["kills"].status == "failed"
    assert "3 times" in ended["kills"].reason
    assert any(isinstance(message, EpochDone) for message in heard)


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        ("Worker exits with a connection error code 2. End of file. Some common causes: memory", "ended: killed"),
        ("Task was killed due to the node running low on memory", "died (out of memory?): Task"),
        ("The task raised. Some common causes: memory", "died: The task raised"),
    ],
)
def test_how_a_worker_ended_is_told_in_words(detail: str, words: str) -> None:
    from ray.exceptions import RayError

    from tiebreak.cluster.ray_pool import _why

    assert _why(RayError(f"The actor died.\nWorker exit detail: {detail}")).startswith(words)


DRIVER = """
import sys
from pathlib import Path

from support.small_study import small_study, train_plan
from tiebreak.plan.planner import make_plan

data, folder = map(Path, sys.argv[1:])
plan = make_plan(small_study(epochs=15), data)
machine = Machine(data_dir=data, on="ray", strategy="loop")
train_plan(plan, folder, machine, lambda message: print(message.kind, flush=True))
"""


def test_workers_end_with_a_killed_driver_and_the_same_command_continues(
    cluster: Any, tmp_path: Path, data: Path
) -> None:
    from support.ray_cluster import node_workers

    folder = tmp_path / "ray"
    folder.mkdir()
    path = os.pathsep.join(map(str, (Path(__file__).parents[1], *filter(None, [os.environ.get("PYTHONPATH")]))))
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(data), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert driver.stdout is not None
    with driver, driver.stdout as heard:
        assert any(line.strip() == "EpochDone" for line in heard)
        workers = node_workers(cluster)
        driver.kill()
    assert workers
    psutil.wait_procs(workers, timeout=300)
    assert not [worker for worker in workers if worker.is_running()]
    plan, _ = train_in(tmp_path / "local", data, small_study(epochs=15))
    again = on_ray(plan, folder, data)
    assert len(epochs_in(again)) < len(plan.runs) * 15
    assert contents(folder) == contents(tmp_path / "local")
