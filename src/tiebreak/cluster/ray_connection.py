"""The connection to a Ray cluster: one line, within a time limit, where there is no cluster or not the right one."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from importlib.util import find_spec
from typing import Any

from tiebreak.cluster.node_facts import Facts, difference, facts_function
from tiebreak.errors import TiebreakError
from tiebreak.system import cores
from tiebreak.text import one_line, printable

RAY_CLIENT = "ray://"  # begins the address of a cluster's head from outside the cluster
CONNECT_SECONDS = 60.0
REACH_SECONDS = 10.0  # for the first byte of a connection
FACTS_SECONDS = 60.0  # for the versions of a machine
QUIET = {  # before Ray is imported, unless the user has set them
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # of a cluster that is started here; 15 would make its workers slower than local ones
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # Ray's own lines about dead workers would go into the progress display
}

Node = dict[str, Any]  # as `ray.nodes()` describes it

_facts: dict[str, Facts] = {}  # of machines that were asked, by the identity that Ray gives a machine for its life


def require_ray(on: str) -> Any:
    """The module `ray`; one line where it is not installed."""
    if find_spec("ray") is None:
        raise TiebreakError(f"--on {on}: Ray is not installed; `pip install 'tiebreak[cluster]'` brings it")
    if on.startswith(RAY_CLIENT) and find_spec("grpc") is None:
        raise TiebreakError(f"--on {on}: Ray's client is not installed; `pip install 'ray[client]'` brings it")
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        again = "`pip install --force-reinstall 'tiebreak[cluster]'` installs it again"
        raise TiebreakError(f"--on {on}: Ray cannot be imported ({one_line(str(error), 200)}); {again}") from None
    return ray


@contextmanager
def connected(on: str, device: str) -> Iterator[None]:
    """A connection to a cluster whose machines have our versions and the device.

    It is closed at the end, and a cluster that was started here with it, unless there was a connection before.
    """
    ray = require_ray(on)
    if ray.is_initialized():
        check_machines(alive_nodes(), device)
        yield
        return
    address = on if on.startswith(RAY_CLIENT) else os.environ.get("RAY_ADDRESS") or "local"
    require_ray(address)
    # Workers look for modules in the folder where a driver was started: an empty one hides none of the libraries.
    with tempfile.TemporaryDirectory(prefix="tiebreak-ray-") as empty:
        try:
            with chdir(empty):
                _connect(ray, address)
            check_machines(alive_nodes(), device)
            yield
        finally:
            ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    """Connect within the time limit. The thread that may wait for ever does not keep the program alive."""
    source = " (RAY_ADDRESS)" if address == os.environ.get("RAY_ADDRESS") else ""
    where = f"Ray cluster at {printable(address)}{source}"
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        ray.init(address=address, include_dashboard=False, num_cpus=cores(), **quiet)
        return
    _check_reachable(address, where)
    errors: list[BaseException] = []

    def connect() -> None:
        try:
            ray.init(address=address, **quiet)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(CONNECT_SECONDS)
    token = "" if os.environ.get("RAY_AUTH_MODE") else "; if it asks for a token, set RAY_AUTH_MODE=token here too"
    if thread.is_alive():
        raise TiebreakError(f"{where}: no answer within {CONNECT_SECONDS:g} s; is it Ray, and of this version?{token}")
    if errors:
        hint = "" if isinstance(errors[0], ValueError) else token  # the address makes no sense
        raise TiebreakError(f"{where}: {one_line(str(errors[0]) or repr(errors[0]), 300)}{hint}") from None


def _check_reachable(address: str, where: str) -> None:
    """Refuse an address at which nothing listens; `auto` and others without a port are left to Ray."""
    host, colon, port = address.removeprefix(RAY_CLIENT).partition("/")[0].rpartition(":")
    if not colon:
        return
    if not (port.isdecimal() and 0 < int(port) < 65536):
        raise TiebreakError(f"{where}: {printable(port)!r} is no port; such as ray://HOST:10001")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error) or "no answer"
        raise TiebreakError(f"{where}: {reason}; start it, or correct the address") from None


def alive_nodes() -> list[Node]:
    """The machines of the cluster that are alive."""
    import ray

    return [node for node in ray.nodes() if node["Alive"]]


def name_of(node: Node) -> str:
    """The name of a machine for people: several nodes may be one host."""
    return f"{node['NodeManagerHostname']} ({node['NodeID'][:6]})"


def check_machines(nodes: Sequence[Node], device: str) -> None:
    """Refuse a cluster without the device, and one with a machine of other versions."""
    if device == "cuda" and not any(node["Resources"].get("GPU") for node in nodes):
        raise TiebreakError("--device cuda: no machine of the Ray cluster has a GPU; use --device cpu, or add one")
    if problems := version_problems(nodes):
        raise TiebreakError(next(iter(problems.values())))


def version_problems(nodes: Sequence[Node]) -> dict[str, str]:
    """For each machine that cannot be used: which versions differ from the driver's."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    function = facts_function()
    asked = {}
    for node in nodes:
        if (key := node["NodeID"]) not in _facts and node["Resources"].get("CPU"):
            place = NodeAffinitySchedulingStrategy(key, soft=False)
            task = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=place)(function)
            asked[key] = task.remote()
    ray.wait(list(asked.values()), num_returns=len(asked), timeout=FACTS_SECONDS) if asked else None
    names, here, problems = {node["NodeID"]: name_of(node) for node in nodes}, function(), {}
    for key, reference in asked.items():
        try:
            _facts[key] = ray.get(reference, timeout=0.1)
        except ray.exceptions.RayError as error:
            problems[key] = f"{names[key]}: does not say its versions ({one_line(str(error), 150)})"
    for key in names.keys() & _facts.keys():
        if apart := difference(here, _facts[key]):
            problems[key] = f"{names[key]} of the Ray cluster has {apart}: numbers would differ; install the same there"
    return problems
