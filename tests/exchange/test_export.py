from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.tracker_files import SCORES
from tiebreak.exchange.export import contents, export, to_csv
from tiebreak.exchange.export_content import ExportContent, of_scores
from tiebreak.exchange.pick import Columns
from tiebreak.exchange.score_sources import read_score_table
from tiebreak.verdict.table_verdict import TableQuestion, table_verdict

EVIL = r"[a] & 50 % \input{/etc/passwd} $x_1^2$ #{~} <b>|* ☃ “中”"


def hostile() -> ExportContent:
    """A table whose names hold everything that LaTeX and Markdown give a meaning to."""
    sets = {"": {EVIL: SCORES["vit"], "b": SCORES["resnet"]}}
    return of_scores(table_verdict(sets, TableQuestion(name="s_1.csv", metric="top_1", margin=0.01)), sets)


def test_csv_can_be_compared_again(tmp_path: Path) -> None:
    paths = export(hostile(), "csv", tmp_path)
    assert [path.name for path in paths] == ["scores.csv", "arms.csv", "comparisons.csv"]
    assert read_score_table(paths[0], Columns()).sets[""][EVIL] == SCORES["vit"]
    (row,) = csv.DictReader(io.StringIO(paths[2].read_text()))
    assert (row["verdict"], row["p_permutation"]) == ("a", "")
    assert to_csv([]) == "arm\n"


def test_json_and_markdown_hold_the_answer() -> None:
    content = hostile()
    (text,) = contents(content, "json").values()
    assert json.loads(text)["scores"] == list(content.scores)
    (shown,) = contents(content, "markdown").values()
    assert isinstance(shown, str)
    assert "± 0.002" in shown
    assert "standard deviation over n seeds" in shown
    assert "<b>" not in shown
    assert all(line.count("|") - line.count("\\|") == 5 for line in shown.splitlines()[2:6])


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_every_figure_is_a_file(kind: str) -> None:
    files = contents(hostile(), kind)  # type: ignore[arg-type]
    assert {"difference-0", "pairs-0", "settings"} == {name.rpartition(".")[0] for name in files}
    starts = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    assert all(isinstance(data, bytes) and data.startswith(starts[kind]) for data in files.values())
    if kind == "svg":
        for data in files.values():
            ElementTree.fromstring(data)
            assert not any(stand_in in str(data) for stand_in in ("#030303", "#040404", "currentColor"))


def test_the_latex_is_booktabs_and_says_what_the_numbers_are() -> None:
    files = contents(hostile(), "latex")
    arms = str(files["arms.tex"])
    assert all(word in arms for word in (r"\toprule", r"\midrule", r"\bottomrule", "standard deviation over $n$ seeds"))
    assert r"0.923 $\pm$ 0.002" in arms
    assert r"\input{/etc" not in arms
    assert "U+2603" in arms
    assert arms.count(r" \\") == 3
    assert "paired $t$-tests" in str(files["comparisons.tex"])
    assert "95\\,\\% interval" in str(files["sentence.tex"])
    assert "figures/difference-0.pdf" in files


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed (texlive-latex-recommended)")
def test_the_latex_compiles(tmp_path: Path) -> None:
    export(hostile(), "latex", tmp_path)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, errors="replace")
    assert done.returncode == 0, done.stdout[-1500:]
    assert (tmp_path / "paper.pdf").stat().st_size > 1000


@pytest.mark.extras
def test_parquet_holds_the_same_tables() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    files = contents(hostile(), "parquet")
    table = parquet.read_table(io.BytesIO(files["scores.parquet"]))  # type: ignore[arg-type]
    assert table.to_pylist() == list(hostile().scores)
