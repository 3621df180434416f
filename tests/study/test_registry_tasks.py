from __future__ import annotations

import re

import pytest

from tiebreak.study import registry
from tiebreak.study.rules import check_options


@pytest.mark.parametrize("task", registry.TASKS)
def test_protocols_name_only_known_options_metrics_and_data(task: str) -> None:
    entry = registry.TASKS[task]
    assert "audited" in entry.protocols
    for name, protocol in entry.protocols.items():
        check_options(name, protocol.options, entry.options)
        assert set(protocol.data) <= registry.DATA.keys()


@pytest.mark.parametrize("task", registry.TASKS)
def test_the_default_of_every_option_is_itself_valid(task: str) -> None:
    entry = registry.TASKS[task]
    for options in (entry.options, entry.evaluation):
        check_options("default", {name: option.default for name, option in options.items()}, options)


def test_reports_are_called_reports() -> None:
    for task in registry.TASKS.values():
        for option in (*task.options.values(), *task.evaluation.values(), *task.use.values()):
            assert not re.search(r"\bR\d", option.line) or "report" in option.line
