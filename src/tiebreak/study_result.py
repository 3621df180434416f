"""A results folder as one object: study, plan, records and verdict, with tables, figures and the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiebreak.plan.runs import Plan
from tiebreak.report.evidence import Evidence
from tiebreak.report.page import document
from tiebreak.results.record import Records
from tiebreak.results.score_rows import Row, score_rows, to_frame
from tiebreak.results.tally import Tally
from tiebreak.study.schema import Study
from tiebreak.system import open_in_browser
from tiebreak.verdict.model import Verdict


@dataclass(frozen=True)
class Result:
    """The content of a results folder. A notebook displays it as the answer, figures and tables."""

    folder: Path
    study: Study
    plan: Plan
    records: Records
    verdict: Verdict

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.folder / document.HTML_FILE

    @property
    def rows(self) -> list[Row]:
        """Every planned run: arm, hyper-parameters, seed, status and all its scores."""
        return score_rows(Tally(self.study, self.plan, self.records))

    def frame(self) -> Any:
        """The same as a pandas DataFrame, a line for each run."""
        return to_frame(self.rows)

    def open(self) -> Path:
        """Open the report in the browser; where there is none, its path is printed."""
        open_in_browser(self.report)
        return self.report

    def __repr__(self) -> str:
        return f"Result({str(self.folder)!r}: {self.verdict.answer})"

    def _repr_html_(self) -> str:
        return document.fragment(Evidence(study=self.study, plan=self.plan, records=self.records, verdict=self.verdict))
