"""No number changes without the identity of the runs: the losses of every design against a stored table."""

from __future__ import annotations

import json

import pytest

from support.golden_losses import CASES, COMMAND, TABLE, entry, source_of
from tiebreak import catalog
from tiebreak.plan.code_identity import Sources

GOLDEN = json.loads(TABLE.read_text("utf-8"))
SOURCES = Sources()


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("case", CASES)
def test_numbers_change_only_with_the_identity(case: str) -> None:
    if case not in GOLDEN:
        pytest.fail(f"{case} is not in {TABLE.name}; run `{COMMAND}`")
    expected, found = GOLDEN[case], entry(case, SOURCES)
    same = found["losses"] == pytest.approx(expected["losses"], rel=1e-9, abs=1e-12)
    same = same and found["metrics"] == pytest.approx(expected["metrics"], rel=1e-6, abs=1e-9)  # outcomes are float32
    if found["source"] == expected["source"]:
        assert same, f"the numbers of {case} changed, the identity does not see it: {expected} became {found}"
    else:
        what = "only the code changed" if same else f"numbers changed too: {expected} became {found}"
        pytest.fail(f"the code of {case} changed, its runs will be trained again ({what}); run `{COMMAND}`")


def test_the_table_has_no_other_entries_and_designs_have_their_own_digests() -> None:
    assert set(GOLDEN) == set(CASES)
    assert len({source_of(design, SOURCES) for design in catalog.DESIGNS.values()}) == len(catalog.DESIGNS)
