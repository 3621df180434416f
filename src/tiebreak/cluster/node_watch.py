"""The machines of a cluster as they come and go: which are used, which are lost, and what they do."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tiebreak.cluster.capacity import Demand
from tiebreak.cluster.ray_connection import Node, alive_nodes, name_of, version_problems
from tiebreak.drive.messages import ClusterState, MachineState, Message, Note
from tiebreak.errors import TiebreakError

LOOK_SECONDS = 2.0  # between two looks
AWAY_SECONDS = 30.0  # a machine that cannot be reached is not used for so long: Ray may take as long to call it dead


class NodeWatch:
    """The machines that can be used now, by Ray's identity of them."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {node["NodeID"]: node for node in alive_nodes()}
        self.names = {key: name_of(node) for key, node in self.nodes.items()}  # of all that were ever there
        self._refused: set[str] = set()
        self._away: dict[str, float] = {}  # cannot be reached -> until when they are left alone
        self._looked = -math.inf
        self._state: ClusterState | None = None

    def room(self, demand: Demand) -> dict[str, int]:
        """How many workers each machine has room for."""
        return {key: demand.fits(node["Resources"]) for key, node in self.nodes.items()}

    def look(self, jobs: Mapping[str, int], *, now: bool = False) -> Iterator[Message]:
        """Say which machines are gone and which have joined, at most every LOOK_SECONDS; `jobs` run on each."""
        time_now = time.monotonic()
        if time_now - self._looked < LOOK_SECONDS and not now:
            return
        self._looked = time_now
        found = {node["NodeID"]: node for node in alive_nodes() if not self.is_away(node["NodeID"])}
        for key in self.nodes.keys() - found.keys():
            del self.nodes[key]
            yield Note(text=f"lost machine {self.names[key]} of the cluster; its jobs go to others")
        new = [node for key, node in found.items() if key not in self.nodes and key not in self._refused]
        problems = version_problems(new) if new else {}
        for node in new:
            if problem := problems.get(node["NodeID"]):
                self._refused.add(node["NodeID"])
                yield Note(text=f"{problem}; not used")
            else:
                self.nodes[node["NodeID"]], self.names[node["NodeID"]] = node, name_of(node)
                yield Note(text=f"machine {name_of(node)} has joined the cluster")
        state = self._describe(jobs)
        if state != self._state:
            self._state = state
            yield state

    def is_away(self, key: str) -> bool:
        """Whether a machine could not be reached a moment ago."""
        return self._away.get(key, 0.0) > time.monotonic()

    def set_away(self, key: str) -> None:
        """Take note that a machine cannot be reached."""
        self._away[key] = time.monotonic() + AWAY_SECONDS

    def refuse(self, key: str, problem: str, demand: Demand) -> Message:
        """Use a machine no more. Without any other, the study stops."""
        self._refused.add(key)
        self.nodes.pop(key, None)
        text = f"{self.names[key]} of the Ray cluster: {problem}"
        if not any(self.room(demand).values()):
            raise TiebreakError(text)
        return Note(text=f"{text}; not used")

    def _describe(self, jobs: Mapping[str, int]) -> ClusterState:
        machines = {
            self.names[key]: MachineState(
                name=self.names[key],
                cores=int(node["Resources"].get("CPU", 0)),
                cores_in_use=jobs.get(key, 0),
                gpus=int(node["Resources"].get("GPU", 0)),
                jobs=jobs.get(key, 0),
                alive=True,
            )
            for key, node in self.nodes.items()
        }
        before = {each.name: each for each in self._state.machines} if self._state else {}
        lost = {name: replace(each, cores_in_use=0, jobs=0, alive=False) for name, each in before.items()}
        return ClusterState(machines=tuple({**lost, **machines}.values()))
