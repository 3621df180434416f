"""Shared fixtures: a generated data folder, and studies that train on it in a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import tiny
from tiebreak import catalog
from tiebreak.study import parsing
from tiebreak.study.schema import Study

pytest_plugins = ["support.cli_fixtures"]

# Which of the many parity tests run every time: every design has its fifty steps, its single steps and its outcomes
# compared. What costs most runs for all classifiers and for a few others, which have the layers of the rest: jobs from
# start to end and company for JOBS, further update rules for RULES. Elsewhere it is slow: `make slow-test`.
JOBS, RULES = {"speech-lstm", "rnn-sigmoid", "gcn"}, {"rnn-sigmoid", "gcn"}
COSTLY = (
    "test_a_runs_numbers_do_not_depend_on_its_company",
    "test_a_job_continued_from_its_checkpoints_is_the_job_without_interruption",
    "test_a_run_that_diverges_in_a_job_is_told_and_the_others_end_as_without_it",
)
OFTEN = "adam"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the costliest as slow."""
    for item in items:
        if not isinstance(item, pytest.Function) or "test_fused_equals_loop" not in item.nodeid:
            continue
        given = item.callspec.params if hasattr(item, "callspec") else {}
        name = str(given.get("design", given.get("name", "")))
        if name not in catalog.DESIGNS or catalog.DESIGNS[name].family == "classifier":
            continue
        costly, rule = item.originalname in COSTLY, given.get("rule", OFTEN)
        if (costly and name not in JOBS) or (rule != OFTEN and name not in RULES):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def tiny_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for --data-dir that holds pneumoniamnist: 96 / 24 / 24 images of 28x28, two classes, easy to learn."""
    return tiny.write_data(tmp_path_factory.mktemp("tiny-data"))


@pytest.fixture(scope="session")
def tiny_study() -> Callable[..., Study]:
    """Makes a small study on pneumoniamnist; keyword arguments replace top-level keys of its file."""

    def make(**changes: Any) -> Study:
        return parsing.validate(Study, tiny.content(**changes), "tiny study")

    return make


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and no data of this machine's user."""
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TIEBREAK_DATA", raising=False)
    return tmp_path / "cache"
