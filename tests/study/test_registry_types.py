from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from tiebreak.study.registry_types import DataEntry, DesignEntry, Option, Protocol, TaskEntry


def test_entries_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Option(default=1, line="").default = 2  # type: ignore[misc]


def test_entries_are_built_by_keyword() -> None:
    with pytest.raises(TypeError):
        DataEntry("classifier", "images")  # type: ignore[call-arg]


def test_two_entries_do_not_share_their_defaults() -> None:
    first, second = (DesignEntry(family="classifier", line="") for _ in range(2))
    assert first.options == {}
    assert first.options is not second.options


def test_a_protocol_that_names_no_data_is_for_all_and_changes_nothing() -> None:
    assert (Protocol().options, Protocol().data) == ({}, ())


def test_a_task_has_no_options_of_use_and_no_order_unless_it_says_so() -> None:
    task = TaskEntry(family="x", line="", metrics={}, options={}, evaluation={}, protocols={})
    assert (task.use, task.ordered) == ({}, False)
