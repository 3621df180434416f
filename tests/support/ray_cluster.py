"""A Ray cluster of several nodes on this machine, one core each, for tests marked `cluster`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import psutil
import pytest

from tiebreak.cluster import shipping
from tiebreak.cluster.shipping import Question, Supplies

Cluster = Any  # ray.cluster_utils.Cluster


@contextmanager
def started(nodes: int) -> Iterator[Cluster]:
    """A cluster with so many nodes, known to this process as RAY_ADDRESS."""
    from tiebreak.cluster.ray_connection import require_ray

    require_ray("ray")  # quiet
    from ray.cluster_utils import Cluster as RayCluster

    cluster = RayCluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        for _ in range(nodes - 1):
            cluster.add_node(num_cpus=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_ADDRESS", cluster.address)
            yield cluster
    finally:
        cluster.shutdown()


@contextmanager
def hidden_files() -> Iterator[None]:
    """Nodes that do not see the driver's files, as on other machines: the token that they find is another one."""
    original = Supplies.question

    @contextmanager
    def question(self: Supplies) -> Iterator[Question]:
        with original(self) as asked:
            yield replace(asked, token="another", data_stamp="another")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shipping.Supplies, "question", question)
        yield


def node_workers(cluster: Cluster) -> list[psutil.Process]:
    """The processes of workers of this cluster."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        with suppress(psutil.Error):
            parent = process.parent()
            ours = parent is not None and any(cluster.address in part for part in parent.cmdline())
            if ours and any("ray::NodeWorker" in part for part in process.info["cmdline"] or ()):
                found.append(process)
    return found
