"""`tiebreak export`: the results of a folder as tables, text or figures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from tiebreak import files
from tiebreak.exchange.export_content import ExportContent, Row
from tiebreak.exchange.extras import require
from tiebreak.exchange.figure_files import figure_files
from tiebreak.exchange.latex_export import latex_files
from tiebreak.exchange.markdown_export import markdown_table

Form = Literal["latex", "csv", "parquet", "json", "markdown", "png", "pdf", "svg"]


def export(content: ExportContent, form: Form, out: Path) -> list[Path]:
    """Write the files of a form into `out`; their paths. Nothing is written before everything is made."""
    made = contents(content, form)
    return [files.write(out / name, text) for name, text in made.items()]


def contents(content: ExportContent, form: Form) -> Mapping[str, str | bytes]:
    """The files of a form by name."""
    if form in ("png", "pdf", "svg"):
        return {name: figure.data for name, figure in figure_files(content, form).items()}
    if form == "latex":
        figures = {f"figures/{name}": figure for name, figure in figure_files(content, "pdf").items()}
        text = latex_files(content, {name: figure.label for name, figure in figures.items()})
        return {**text, **{name: figure.data for name, figure in figures.items()}}
    if form == "json":
        everything = {**content.verdict.model_dump(mode="json"), "scores": list(content.scores)}
        return {"results.json": json.dumps(everything, indent=1, ensure_ascii=False) + "\n"}
    if form == "markdown":
        return {"results.md": markdown_table(content)}
    tables = {"scores": list(content.scores), "arms": content.arms(), "comparisons": content.comparisons()}
    write: Callable[[Sequence[Row]], str | bytes] = to_csv if form == "csv" else to_parquet
    return {f"{name}.{form}": write(rows) for name, rows in tables.items()}


def to_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV; numbers with all their digits, what does not exist is empty."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]) if rows else ["arm"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def to_parquet(rows: Sequence[Row]) -> bytes:
    """Rows as Parquet, by pyarrow."""
    arrow, parquet = (require(name, "parquet", "--to parquet") for name in ("pyarrow", "pyarrow.parquet"))
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    if any(isinstance(seed, str) for seed in columns.get("seed", ())):
        columns["seed"] = [str(seed) for seed in columns["seed"]]  # a column has one type
    buffer = io.BytesIO()
    parquet.write_table(arrow.table(columns), buffer)
    return buffer.getvalue()
