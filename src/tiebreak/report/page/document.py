"""The report as one HTML page, as Markdown and as a notebook's fragment. Everything from data and files is escaped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Plan, digest
from tiebreak.report import formatting
from tiebreak.report.evidence import Evidence
from tiebreak.report.figures import drawing
from tiebreak.report.page import comparisons, provenance, tables, view
from tiebreak.results.misfit import explain_misfit
from tiebreak.results.packing import fingerprint
from tiebreak.results.record import Records
from tiebreak.study import registry
from tiebreak.study.schema import Study
from tiebreak.verdict.model import Verdict

if TYPE_CHECKING:
    from jinja2 import Environment

HTML_FILE = "report.html"
MARKDOWN_FILE = "report.md"
HEAD_BYTES = 2048  # the digest stands in the first lines of the page


def write_report(folder: Path, study: Study, plan: Plan, records: Records, verdict: Verdict) -> Path:
    """Write report.md and report.html into `folder`, each whole or not at all; the path of the page."""
    for name, content in contents(study, plan, records, verdict).items():
        files.write(folder / name, content)
    return folder / HTML_FILE


def contents(study: Study, plan: Plan, records: Records, verdict: Verdict) -> dict[str, str]:
    """The files of a report: report.md and report.html."""
    evidence = Evidence(study=study, plan=plan, records=records, verdict=verdict)
    return {MARKDOWN_FILE: _markdown(evidence), HTML_FILE: _html(evidence)}


def html(study: Study, plan: Plan, records: Records, verdict: Verdict) -> str:
    """The page: one file that needs no other, and no network."""
    return _html(Evidence(study=study, plan=plan, records=records, verdict=verdict))


def _html(evidence: Evidence) -> str:
    with explain_misfit(evidence.study.name):
        values = view.content(evidence, number=formatting.signed_minus) | view.figures(evidence)
    css = (Path(__file__).parent / "page.css").read_text("utf-8")
    template = _environment().get_template("page.html.jinja")
    page = template.render(**values, css=css, inputs=inputs_digest(evidence.plan, evidence.records, evidence.verdict))
    return provenance.without_paths(page, evidence.study, lambda path: str(escape(path)))


def markdown(study: Study, plan: Plan, records: Records, verdict: Verdict) -> str:
    """The same without figures."""
    return _markdown(Evidence(study=study, plan=plan, records=records, verdict=verdict))


def _markdown(evidence: Evidence) -> str:
    with explain_misfit(evidence.study.name):
        values = view.content(evidence)
    text = _markdown_environment().get_template("page.md.jinja").render(**values)
    text = provenance.without_paths(text, evidence.study, _escape_markdown)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def fragment(evidence: Evidence) -> str:
    """The answer, its figures, the arms and the comparisons as a piece of HTML for a notebook."""
    verdict = evidence.verdict
    with explain_misfit(evidence.study.name):
        drawn = view.notebook_figures(evidence)
    template = _environment().get_template("fragment.html.jinja")
    page = template.render(
        verdict=verdict,
        arms=tables.arm_rows(verdict),
        answer=comparisons.answer(verdict, formatting.signed_minus),
        comparisons=comparisons.comparison_rows(verdict),
        **drawn,
    )
    return provenance.without_paths(page, evidence.study, lambda path: str(escape(path)))


def inputs_digest(plan: Plan, records: Records, verdict: Verdict) -> str:
    """A digest of everything that a report shows, and of the program's version."""
    trajectories = {run.trajectory for run in plan.runs.values()}
    return digest(
        {
            "version": view.tiebreak_version(),
            "plan": plan.model_dump(mode="json", exclude={"runs"}),
            "runs": sorted(plan.runs),
            "verdict": verdict.model_dump(mode="json"),
            "epochs": {
                trajectory: {epoch: [dict(item.metrics), dict(item.seconds)] for epoch, item in epochs.items()}
                for trajectory, epochs in records.epochs.items()
                if trajectory in trajectories
            },
            "status": {
                identity: [item.status, item.epoch, item.reason, dict(item.provenance)]
                for identity, item in records.runs.items()
                if identity in plan.runs
            },
            "choices": sorted(str(choice) for choice in records.choices.values()),
            "finals": {
                identity: {key: [dict(item.metrics), fingerprint(item.outcomes)] for key, item in finals.items()}
                for identity, finals in records.finals.items()
                if identity in plan.runs
            },
            "exhibits": {
                identity: {name: fingerprint(item.arrays) for name, item in shown.items()}
                for identity, shown in records.exhibits.items()
                if identity in plan.runs
            },
        }
    )


def is_current(folder: Path, digest: str) -> bool:
    """Whether both files are there and the page was made from the inputs with this digest."""
    try:
        with files.inside(folder, HTML_FILE).open("rb") as file:
            head = file.read(HEAD_BYTES).decode("utf-8", errors="replace")
    except (OSError, TiebreakError):  # a link or a pipe is replaced by a file
        return False
    found = re.search(r'<meta name="tiebreak-inputs" content="([0-9a-f]+)">', head)
    return found is not None and found[1] == digest and (folder / MARKDOWN_FILE).is_file()


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=formatting.true_minus, prose=_prose, words=_words, metric=registry.metric_label)
    environment.globals.update(colour=drawing.colour, swatch=drawing.swatch)
    return environment


def _prose(text: str) -> str:
    """A sentence in which a number stays on one line with its per cent sign."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _words(command: str) -> Markup:
    """A command that is broken between its words only: browsers break after a hyphen too."""
    return Markup(" ").join(Markup('<span class="word">{}</span>').format(word) for word in command.split(" "))


class _Code(str):
    """Text that is already Markdown."""

    __slots__ = ()


def _markdown_environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(  # `finalize` escapes
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_escape_markdown,
    )
    environment.filters["metric"] = registry.metric_label
    environment.filters["code"] = lambda text: _Code(
        "`" + _one_line(str(text)).replace("`", "'").replace("|", "\\|") + "`"
    )
    return environment


def _escape_markdown(value: Any) -> str:
    if isinstance(value, _Code):
        return value
    text = _one_line(str(value)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def _one_line(text: str) -> str:
    return " ".join(text.split())
