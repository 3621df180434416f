"""The user's own task, `task = "own"`: what a study says of it. Its code is in the study's design file.

`tasks.own_task` says what the functions of the file are given and what they return.
"""

from __future__ import annotations

from collections.abc import Mapping

from tiebreak.study.registry import OWN_TASK, Goal, MetricEntry, Protocol, TaskEntry

NO_DATA = "the task's own"  # data where the study names none: the function `load` takes nothing
FUNCTIONS = ("load", "loss", "metrics")  # of the design file


def entry(goals: Mapping[str, Goal]) -> TaskEntry:
    """What is known of the task: its metrics are means over the examples, and so is its loss."""
    every: dict[str, Goal] = {**goals, "loss": "min"}
    return TaskEntry(
        family=OWN_TASK,
        line="your own task",
        metrics={name: MetricEntry(goal=goal) for name, goal in every.items()},
        options={},
        evaluation={},
        protocols={"audited": Protocol()},
    )
