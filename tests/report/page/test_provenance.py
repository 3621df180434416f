from __future__ import annotations

from pathlib import Path

import pytest

from support import sample_report
from tiebreak.plan.runs import RAN_CODE
from tiebreak.report.page import document
from tiebreak.report.page.provenance import commands, next_step
from tiebreak.verdict.model import Stopping


def test_commands_add_the_seeds_that_are_needed() -> None:
    verdict = sample_report.partial().verdict
    more = verdict.primary.model_copy(update={"seeds_needed": 14})
    verdict = verdict.model_copy(update={"comparisons": (more, *verdict.comparisons[1:])})
    advised = ("add seeds, counted as a further look", "tiebreak run study.toml --out . --seeds 18")
    assert advised in commands(verdict)
    few = verdict.model_copy(update={"comparisons": (more.model_copy(update={"seeds": 3}),)})
    advised = ("add seeds until it is decided", "tiebreak run study.toml --out . --until-decided")
    assert advised in commands(few), "three cannot tell how many would decide"
    for needed, option in ((96, " --seeds 100"), (20_000, None)):
        many = verdict.model_copy(
            update={"seeds": 60, "comparisons": (more.model_copy(update={"seeds_needed": needed}),)}
        )
        step = next_step(many, Path())
        assert (step and step[1]) == (option and f"tiebreak run study.toml --out .{option}")
    kept = sample_report.complete().verdict
    assert [what for what, _ in commands(kept)] == [
        "repeat it elsewhere",
        "widen the grid; trained runs are kept",
        "verify every hash",
    ]
    lost = kept.model_copy(update={"finished": 80})
    assert ("train what is missing", "tiebreak run study.toml --out .") in commands(lost)


@pytest.mark.parametrize(
    ("reason", "following", "what", "option"),
    [("most seeds", None, "further look", " --max-seeds 22"), ("futile", None, "further look", " --max-seeds 22"),
     ("goes on", 12, "next look", ""), ("decided", None, None, "")],
)  # fmt: skip
def test_a_stopped_study_goes_on_with_a_larger_cap(
    reason: str, following: int | None, what: str | None, option: str
) -> None:
    """With `--seeds N` it would have a fixed number of seeds again, decided at one look."""
    verdict = sample_report.complete().verdict
    fields = {"max_seeds": 10, "comparisons": "primary", "looks": (6, 8), "chance": None}
    stopping = Stopping.model_validate({**fields, "reason": reason, "next": following})
    first = verdict.primary.model_copy(update={"seeds_needed": 14 if what else None})
    verdict = verdict.model_copy(update={"stopping": stopping, "seeds": 8, "comparisons": (first,)})
    found = next_step(verdict, Path())
    assert (found is None) == (what is None)
    if found is not None and what is not None:
        assert what in found[0]
        assert found[1] == f"tiebreak run study.toml --out .{option}"
        assert found in commands(verdict)


def test_a_shared_report_has_no_absolute_path_and_no_box_about_code() -> None:
    it = sample_report.complete()
    own = {"designs_from": "/home/me/secret/my_nets.py", "data": "/home/me/secret/digits & co.npz"}
    study = it.study.model_copy(update=own)
    plan = it.plan.model_copy(update={"warnings": (f"{study.designs_from} {RAN_CODE}",)})
    verdict = it.verdict.model_copy(update={"warnings": plan.warnings, "data": study.data})
    for render in (document.html, document.markdown):
        written = render(study, plan, it.records, verdict)
        assert "/home/me" not in written
        assert "my_nets.py, the user" in written
        assert "your rights" not in written
