"""Queries that read few rows or columns, where reading and checking whole tables would take long."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from tiebreak.results.migration import row_hash
from tiebreak.results.record import CheckpointRecord

Select = Callable[..., list[Any]]  # a query and its values -> rows


def older_checkpoints(select: Select, newest: Sequence[CheckpointRecord], kept: int) -> list[Any]:
    """The intact checkpoints of runs, each up to its newest one, without the last `kept`: rows without their hashes."""
    if not newest:
        return []
    columns = "identity, trajectory, epoch, file, sha256, row_sha256"
    places = ", ".join(["(?, ?)"] * len(newest))
    rows = select(
        f"SELECT {columns} FROM (SELECT *, row_number() OVER (PARTITION BY identity ORDER BY epoch DESC) AS place "
        f"FROM checkpoints JOIN (VALUES {places}) ON identity = column1 AND epoch <= column2) WHERE place > ?",
        (*(value for each in newest for value in (each.identity, each.epoch)), kept),
    )
    return [content for *content, sha256 in rows if row_hash(*content) == sha256]


def epoch_numbers(select: Select) -> dict[str, Collection[int]]:
    """Which epochs of each trajectory are stored, from the index alone: damage of their content is not noticed."""
    found: dict[str, Collection[int]] = {}
    for trajectory, count, first, last in select(
        "SELECT trajectory, count(*), min(epoch), max(epoch) FROM epochs GROUP BY trajectory"
    ):
        if (first, last) == (1, count):
            found[trajectory] = range(1, count + 1)
        else:
            rows = select("SELECT epoch FROM epochs WHERE trajectory = ? ORDER BY epoch", (trajectory,))
            found[trajectory] = [epoch for (epoch,) in rows]
    return found
