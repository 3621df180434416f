from __future__ import annotations

import inspect

import pytest

from tiebreak import catalog
from tiebreak.tasks.interface import Task


@pytest.mark.parametrize("name", catalog.TASKS)
def test_every_task_has_every_method_of_the_interface(name: str) -> None:
    wanted = {key: value for key, value in vars(Task).items() if inspect.isfunction(value) and not key.startswith("_")}
    assert wanted
    for method, declared in wanted.items():
        own = getattr(catalog.TASKS[name], method)
        assert list(inspect.signature(own).parameters) == list(inspect.signature(declared).parameters)[1:], method
