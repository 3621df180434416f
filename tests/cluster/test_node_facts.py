from __future__ import annotations

import platform

from tiebreak.cluster.node_facts import difference, facts_function


def test_a_machine_like_this_one_has_no_difference() -> None:
    facts = facts_function()()
    assert facts["python"] == platform.python_version()
    assert difference(facts, facts_function()()) == ""


def test_every_version_that_differs_is_named_with_both_numbers() -> None:
    here = {"python": "3.12.1", "torch": "2.13.0", "tiebreak": "0.1.0", "code": "a"}
    found = difference(here, {**here, "torch": "2.11.0", "python": "3.11.7", "code": "b"})
    assert "torch 2.11.0 instead of 2.13.0" in found
    assert "python 3.11.7" in found
    assert "tiebreak missing" in difference(here, {**here, "tiebreak": "missing", "code": ""})


def test_other_code_under_the_same_number_is_a_difference() -> None:
    here = {"python": "3.12.1", "torch": "2.13.0", "tiebreak": "0.1.0", "code": "a"}
    assert "code of tiebreak" in difference(here, {**here, "code": "b"})
