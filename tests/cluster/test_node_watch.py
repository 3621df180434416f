from __future__ import annotations

from typing import Any

import pytest

from tiebreak.cluster import node_watch
from tiebreak.cluster.capacity import Demand
from tiebreak.cluster.node_watch import AWAY_SECONDS, NodeWatch
from tiebreak.drive.messages import ClusterState, Message, Note
from tiebreak.errors import TiebreakError

DEMAND = Demand(cpus=1, gpus=0, memory=1)


def node(key: str) -> dict[str, Any]:
    return {"NodeID": key, "NodeManagerHostname": "host", "Alive": True, "Resources": {"CPU": 2.0, "memory": 9.0}}


class Network:
    """What Ray says, and the clock."""

    def __init__(self) -> None:
        self.alive, self.problems, self.now = ["first", "second"], dict[str, str](), 0.0


@pytest.fixture(name="network")
def _network(monkeypatch: pytest.MonkeyPatch) -> Network:
    network = Network()
    monkeypatch.setattr(node_watch, "alive_nodes", lambda: [node(key) for key in network.alive])
    monkeypatch.setattr(node_watch, "version_problems", lambda nodes: network.problems)
    monkeypatch.setattr("time.monotonic", lambda: network.now)
    return network


def told(messages: list[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, Note)]


def state(messages: list[Message]) -> dict[str, tuple[bool, int]]:
    (found,) = [message for message in messages if isinstance(message, ClusterState)]
    return {each.name: (each.alive, each.jobs) for each in found.machines}


def test_the_state_is_told_when_it_changes_and_not_too_often(network: Network) -> None:
    watch = NodeWatch()
    assert state(list(watch.look({"first": 1}))) == {"host (first)": (True, 1), "host (second)": (True, 0)}
    network.alive = ["first", "third"]
    assert not list(watch.look({}))  # too soon
    network.now += 10
    messages = list(watch.look({}))
    lost, joined = told(messages)
    assert "lost" in lost
    assert "second" in lost
    assert "third" in joined
    assert state(messages) == {
        "host (first)": (True, 0),
        "host (second)": (False, 0),
        "host (third)": (True, 0),
    }
    network.now += 10
    assert not list(watch.look({}))  # nothing new
    assert watch.room(DEMAND) == {"first": 2, "third": 2}


def test_a_machine_that_joins_with_other_versions_is_not_used(network: Network) -> None:
    watch = NodeWatch()
    network.alive.append("third")
    network.problems = {"third": "host (third) has torch 1.0"}
    (note,) = told(list(watch.look({}, now=True)))
    assert "torch 1.0" in note
    assert "not used" in note
    assert "third" not in watch.nodes
    assert not told(list(watch.look({}, now=True)))  # once


def test_a_machine_that_cannot_be_reached_is_left_alone_for_a_while(network: Network) -> None:
    watch = NodeWatch()
    watch.set_away("second")
    assert "lost" in told(list(watch.look({}, now=True)))[0]
    network.now += AWAY_SECONDS + 1
    assert "joined" in told(list(watch.look({})))[0]


def test_the_study_stops_when_no_machine_can_be_used(network: Network) -> None:
    watch = NodeWatch()
    assert isinstance(watch.refuse("first", "no GPU", DEMAND), Note)
    with pytest.raises(TiebreakError, match="no GPU"):
        watch.refuse("second", "no GPU", DEMAND)
