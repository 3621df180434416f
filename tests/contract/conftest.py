"""Which of the many parity tests run every time.

Every design has its fifty steps, its single steps and its outcomes compared. What costs most (jobs from start to end,
company, further update rules) runs for all classifiers and for one design of each other family; for the others of a
family, which share its layers, it is marked slow: `make slow-test`.
"""

from __future__ import annotations

import pytest

from tiebreak import catalog

FIRST = {"translator-attention", "speech-lstm", "rnn-sigmoid", "gcn"}
COSTLY = (
    "test_a_runs_numbers_do_not_depend_on_its_company",
    "test_a_job_continued_from_its_checkpoints_is_the_job_without_interruption",
    "test_a_run_that_diverges_in_a_job_is_told_and_the_others_end_as_without_it",
)
OFTEN = "adam"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "test_fused_equals_loop" not in item.nodeid or not isinstance(item, pytest.Function):
            continue
        given = getattr(item, "callspec", None)
        name = given.params.get("design", given.params.get("name")) if given is not None else None
        if name not in catalog.DESIGNS or catalog.DESIGNS[name].family == "classifier" or name in FIRST:
            continue
        rule = given.params.get("rule", OFTEN) if given is not None else OFTEN
        if item.originalname in COSTLY or rule != OFTEN:
            item.add_marker(pytest.mark.slow)
