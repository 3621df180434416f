from __future__ import annotations

from support import sample_report
from tiebreak.plan.runs import RAN_CODE
from tiebreak.report.page import document
from tiebreak.report.page.provenance import commands


def test_commands_add_the_seeds_that_are_needed() -> None:
    verdict = sample_report.partial().verdict
    more = verdict.primary.model_copy(update={"seeds_needed": 14})
    verdict = verdict.model_copy(update={"comparisons": (more, *verdict.comparisons[1:])})
    advised = ("add seeds until it is decided", "tiebreak run study.toml --out . --until-decided")
    assert advised in commands(verdict)
    many = verdict.model_copy(update={"seeds": 60, "comparisons": (more.model_copy(update={"seeds_needed": 96}),)})
    advice = {command: what for what, command in commands(many)}
    assert "further look" in advice["tiebreak run study.toml --out . --seeds 100"]
    kept = sample_report.complete().verdict
    assert [what for what, _ in commands(kept)] == [
        "repeat it elsewhere",
        "widen the grid; trained runs are kept",
        "verify every hash",
    ]
    lost = kept.model_copy(update={"finished": 80})
    assert ("train what is missing", "tiebreak run study.toml --out .") in commands(lost)


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
