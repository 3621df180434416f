from __future__ import annotations

import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tiebreak.cluster import ray_connection
from tiebreak.cluster.node_facts import facts_function
from tiebreak.cluster.ray_connection import (
    _check_reachable,
    _connect,
    check_machines,
    name_of,
    require_ray,
    version_problems,
)
from tiebreak.drive.machine import Machine, reached
from tiebreak.errors import TiebreakError


def node(key: str = "0123456789", **resources: float) -> dict[str, Any]:
    return {"NodeID": key, "NodeManagerHostname": "host", "Alive": True, "Resources": {"CPU": 1.0, **resources}}


def test_without_ray_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_connection, "find_spec", lambda name: None)
    with pytest.raises(TiebreakError, match=r"tiebreak\[cluster\]"), reached(Machine(on="ray")):
        pass
    monkeypatch.setattr(ray_connection, "find_spec", lambda name: None if name == "grpc" else object())
    with pytest.raises(TiebreakError, match=r"ray\[client\]"):
        require_ray("ray://host:10001")


def test_a_ray_that_cannot_be_imported_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError('of another system')", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    with pytest.raises(TiebreakError, match=r"of another system.*tiebreak\[cluster\]"):
        require_ray("ray")


def test_an_address_where_nothing_listens_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"ray://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(TiebreakError, match="refused") as caught:
            _check_reachable(address, address)
        assert address in str(caught.value)
        free.listen()
        _check_reachable(address, address)
    with pytest.raises(TiebreakError, match="port"):
        _check_reachable("ray://host:many", "")
    _check_reachable("auto", "")


def test_an_address_that_makes_no_sense_is_named_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(address: str, **options: Any) -> None:
        raise ValueError(f"Invalid address format: {address}")

    monkeypatch.setenv("RAY_ADDRESS", "nonsense")
    with pytest.raises(TiebreakError, match=r"nonsense.*RAY_ADDRESS.*format") as caught:
        _connect(SimpleNamespace(init=init), "nonsense")
    assert "token" not in str(caught.value)


def test_a_gpu_that_no_machine_has_is_refused() -> None:
    with pytest.raises(TiebreakError, match="GPU"):
        check_machines([node()], "cuda")


def test_a_machine_with_other_versions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    facts = facts_function()()
    known = {"0123456789": facts, "other": {**facts, "torch": "1.0"}}
    monkeypatch.setattr(ray_connection, "_facts", known)
    check_machines([node(GPU=1.0)], "cuda")
    (problem,) = version_problems([node(), node("other")]).values()
    assert "torch 1.0" in problem
    with pytest.raises(TiebreakError, match=r"torch 1\.0"):
        check_machines([node("other")], "cpu")
    assert "host" in name_of(node())


@pytest.mark.cluster
def test_a_port_that_is_not_ray_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    monkeypatch.setattr(ray_connection, "CONNECT_SECONDS", 0.1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(TiebreakError, match="no answer"), reached(Machine(on="ray")):
            pass
