"""LaTeX for a paper: booktabs tables, the sentence for the text, and a document that compiles with them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from tiebreak.exchange.export_content import ExportContent
from tiebreak.report import formatting
from tiebreak.text import listed, printable
from tiebreak.verdict.model import ArmResult, ComparisonResult

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "`": r"\textasciigrave{}", "[": "{[}", "]": "{]}", "*": "{*}",
    "±": r"$\pm$", "−": "$-$", "·": r"$\cdot$", "\N{NO-BREAK SPACE}": "~",
    "×": r"$\times$", "→": r"$\rightarrow$", "←": r"$\leftarrow$", "≤": r"$\leq$", "≥": r"$\geq$", "≈": r"$\approx$",
    "–": "--", "—": "---", "’": "'", "‘": "`", "“": "``", "”": "''", "…": r"\ldots{}",
}  # fmt: skip
GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau phi chi psi omega"
SPECIAL |= {unicodedata.lookup(f"GREEK SMALL LETTER {'LAMDA' if name == 'lambda' else name.upper()}"): rf"$\{name}$"
            for name in GREEK.split()}  # fmt: skip
NUMBER = re.compile(r"(?<![\w.])(?:([+-]?\d(?:\.\d+)?)e(-\d+)|([+-]\d(?:[\d,.]*\d)?))")
LATIN_END = 0x180  # of the letters with accents that pdfLaTeX knows in the encoding of paper.tex
PAPER = r"""\documentclass{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{booktabs}
\usepackage{graphicx}
\begin{document}
\input{sentence}
\input{arms}
\input{comparisons}
%s
\end{document}
"""


def latex_files(content: ExportContent, figures: Mapping[str, str]) -> dict[str, str]:
    """The files by name: arms.tex and comparisons.tex (booktabs), sentence.tex, and paper.tex, which inputs them.

    `figures`: the files that paper.tex shows, with their captions.
    """
    shown = "\n".join(
        f"\\begin{{figure}}\n\\centering\n\\includegraphics[width=\\linewidth,height=.4\\textheight,keepaspectratio]"
        f"{{{name}}}\n\\caption{{{numbers(escape(label[:1].upper() + label[1:]))}}}\n\\end{{figure}}\n\\clearpage"
        for name, label in figures.items()
    )
    return {
        "arms.tex": arms_table(content),
        "comparisons.tex": comparisons_table(content),
        "sentence.tex": sentence(content),
        "paper.tex": PAPER % shown,
    }


def escape(text: object) -> str:
    r"""Any text as LaTeX that compiles: a character that pdfLaTeX does not know becomes its number.

    >>> escape("50 % of a_b"), escape("[x]"), escape("\N{SNOWMAN}")
    ('50 \\% of a\\_b', '{[}x{]}', 'U+2603')
    """
    plain = printable(text)
    return "".join(_letter(letter, after) for letter, after in zip(plain, [*plain[1:], ""], strict=True))


def _letter(letter: str, after: str) -> str:
    if letter in SPECIAL:
        return SPECIAL[letter]
    if letter.isascii():
        return f"{letter}{{}}" if letter == after and letter in "-'," else letter  # "--" would become a dash
    known = letter.isalpha() and ord(letter) < LATIN_END and unicodedata.normalize("NFD", letter)[0].isascii()
    return letter if known or letter in "ßæøœÆØŒłŁđșțȘȚ§°µ¿¡£" else f"U+{ord(letter):04X}"


def numbers(text: str) -> str:
    r"""Escaped text whose signed and very small numbers are in mathematics mode, so that a minus is one.

    >>> numbers("-0.2 to 1.2e-05")
    '$-0.2$ to $1.2\\times10^{-5}$'
    """
    return NUMBER.sub(_number, text).replace(r" \%", r"\,\%")


def _number(found: re.Match[str]) -> str:
    digits, exponent, signed = found.groups()
    return f"${signed}$" if signed else f"${digits}\\times10^{{{int(exponent)}}}$"


def arms_table(content: ExportContent) -> str:
    """The arms: mean ± standard deviation over seeds, the interval of the mean, n."""
    metric, goal = content.quantity, content.verdict.metric.goal
    lower = "; lower is better" if goal == "min" else ""
    setting = any(item.setting for item in content.verdict.designs)
    chosen = " Each arm at the setting that validation chose." if setting else ""
    caption = (
        f"{escape(metric[:1].upper() + metric[1:])}{lower}: mean $\\pm$ standard deviation over $n$ seeds (runs that "
        f"finished), and the 95\\,\\% $t$ interval of the mean.{chosen}{_failed(content.verdict.designs)}"
    )
    rows = [f"{escape(item.name)} & {_mean(item)} & {_interval(item.low, item.high)} & {item.seeds} \\\\"
            for item in content.verdict.designs]  # fmt: skip
    head = f"Arm & {escape(metric[:1].upper() + metric[1:])} & 95\\,\\% interval & $n$ \\\\"
    return _table("lrrr", caption, f"tab:{content.label}-arms", head, rows)


def _failed(designs: Sequence[ArmResult]) -> str:
    lost = [f"{escape(item.name)} {item.failed}" for item in designs if item.failed]
    return f" Runs that diverged or failed: {', '.join(lost)}." if lost else ""


def _mean(item: ArmResult) -> str:
    if item.mean is None:
        return "--"
    spread = f" $\\pm$ {formatting.score(item.sd)}" if item.sd is not None else ""
    return numbers(formatting.score(item.mean) + spread)


def _interval(low: float | None, high: float | None) -> str:
    return "--" if low is None or high is None else numbers(f"[{formatting.score(low)}, {formatting.score(high)}]")


def comparisons_table(content: ExportContent) -> str:
    """The comparisons: difference with its simultaneous interval, adjusted p, n, the verdict."""
    items = content.verdict.comparisons
    tests = {
        "paired-t": "paired $t$-tests over $n$ seeds",
        "welch": "Welch's $t$-tests over unpaired runs ($n$ of each arm)",
        "wilcoxon": "Wilcoxon's signed-rank tests over $n$ data sets",
    }
    used = [text for test, text in tests.items() if any(item.test == test for item in items)]
    margins = sorted({item.margin for item in items})
    together = f"Intervals and $p$ hold for the {content.families} together (Holm). " if len(items) > 1 else ""
    within = ", ".join(rf"$\pm${margin:g}" for margin in margins)
    caption = (
        f"Differences (first minus second arm) with 95\\,\\% intervals and $p$ values by {' and '.join(used)}. "
        f"{together}Margin: {within}."
    )
    rows = [_comparison(item) for item in items]
    head = "Comparison & Difference & 95\\,\\% interval & $p$ & $n$ & Verdict \\\\"
    return _table("lrrrrl", caption, f"tab:{content.label}-comparisons", head, rows)


def _comparison(item: ComparisonResult) -> str:
    ends = [formatting.open_interval(item.low, item.high)] if item.low is not None else ["--"]
    p = "--" if item.p_adjusted is None else formatting.p_value(item.p_adjusted)
    n = f"{item.runs[0]}, {item.runs[1]}" if item.runs is not None else str(item.seeds)
    cells = [item.name, formatting.signed(item.difference), *ends, p, n, formatting.outcome(item)]
    escaped = [escape(cells[0]), *(numbers(escape(cell)) for cell in cells[1:5]), escape(cells[5])]
    return " & ".join(cell.replace("\\textless{}", "$<$") for cell in escaped) + " \\\\"


def _table(columns: str, caption: str, label: str, head: str, rows: Sequence[str]) -> str:
    lines = [
        "\\begin{table}", "\\centering", "\\footnotesize", "\\setlength{\\tabcolsep}{4pt}",
        f"\\caption{{{caption}}}", f"\\label{{{label}}}",
        f"\\begin{{tabular}}{{{columns}}}", "\\toprule", head, "\\midrule", *rows, "\\bottomrule", "\\end{tabular}",
        "\\end{table}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def sentence(content: ExportContent) -> str:
    """The answer and how it was found, for the text."""
    verdict = content.verdict
    answer = numbers(escape(content.answer))
    tests = {item.test for item in verdict.comparisons}
    by = {
        "paired-t": "paired $t$-tests by seed",
        "welch": "Welch's $t$-tests",
        "wilcoxon": "Wilcoxon's signed-rank test",
    }
    how = " and ".join(text for test, text in by.items() if test in tests)
    many = len(verdict.comparisons)
    holm = f", with Holm's correction for the {content.families}" if many > 1 else ""
    seeds = [str(look.seeds) for look in verdict.primary.path]
    looked = f" The looks at {listed(seeds)} seeds share the error (alpha spending)." if len(seeds) > 1 else ""
    margin = numbers(f"{verdict.margin:g}")
    return f"{answer} Verdicts are by {how}{holm}; differences below {margin} count as the same.{looked}\n"
