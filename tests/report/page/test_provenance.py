from __future__ import annotations

from support import sample_report
from tiebreak.report.page.provenance import commands


def test_commands_add_the_seeds_that_are_needed() -> None:
    verdict = sample_report.partial().verdict
    more = verdict.primary.model_copy(update={"seeds_needed": 14})
    verdict = verdict.model_copy(update={"comparisons": (more, *verdict.comparisons[1:])})
    assert ("add the seeds still needed", "tiebreak run study.toml --out . --seeds 18") in commands(verdict)
    kept = sample_report.complete().verdict
    assert [what for what, _ in commands(kept)] == ["repeat it elsewhere", "verify every hash"]
    lost = kept.model_copy(update={"finished": 80})
    assert ("train what is missing", "tiebreak run study.toml --out .") in commands(lost)
