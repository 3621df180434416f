"""Tables and the sentence as Markdown, for a README or an issue."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tiebreak.exchange.export_content import ExportContent
from tiebreak.report import formatting
from tiebreak.text import printable
from tiebreak.verdict import sentences


def markdown_table(content: ExportContent) -> str:
    """The answer, the arms (mean ± standard deviation, n) and the comparisons."""
    verdict = content.verdict
    lower = " (lower is better)" if verdict.metric.goal == "min" else ""
    arms = [
        [
            item.name,
            formatting.score(item.mean) + (f" ± {formatting.score(item.sd)}" if item.sd is not None else ""),
            formatting.interval(item.low, item.high),
            str(item.seeds),
        ]
        for item in verdict.designs
    ]
    compared = [
        [
            item.name,
            formatting.signed(item.difference),
            formatting.open_interval(item.low, item.high),
            formatting.p_value(item.p_adjusted),
            sentences.replicates(item),
            formatting.outcome(item),
        ]
        for item in verdict.comparisons
    ]
    return "\n".join(
        [
            escape(content.answer),
            "",
            *_table(["arm", f"{content.quantity}{lower}", "95 % interval of the mean", "n"], arms),
            "",
            "Mean ± standard deviation over n seeds; 95 % t interval of the mean.",
            "",
            *_table(["comparison", "difference", "95 % interval", "adjusted p", "over", "verdict"], compared),
            "",
            f"Differences are the first arm minus the second; intervals and p hold for the {content.families} together "
            f"(Holm). Margin: ±{verdict.margin:g}.",
            "",
        ]
    )


def escape(text: str) -> str:
    """Text that Markdown shows as it stands."""
    plain = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))", r"\\\1", plain)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [list(map(escape, cells)) for cells in (head, *rows)]
    rule = ["---", *["--:"] * (len(head) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (lines[0], rule, *lines[1:])]
