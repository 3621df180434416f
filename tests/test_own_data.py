"""docs/own-data.md: the files that it shows are read, and its messages are those of the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tiebreak.data.graphs import graph_data
from tiebreak.data.graphs.graph_files import read_graph
from tiebreak.data.labelled.labelled_files import read_labelled
from tiebreak.data.pairs.pair_files import read_pairs
from tiebreak.errors import TiebreakError
from tiebreak.exchange.score_sources import read_scores
from tiebreak.study import registry

PAGE = (Path(__file__).parents[1] / "docs" / "own-data.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


@pytest.fixture(name="graph")
def _graph(tmp_path: Path) -> Path:
    for name, text in zip(("edges", "features", "labels"), blocks("csv")[1:], strict=False):
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def test_the_graph_of_the_page_is_read(graph: Path) -> None:
    data = graph_data.load(f"{graph}/")
    assert (data.node_names, data.class_names, data.notes) == (("a", "b", "c", "d"), ("short", "tall"), ())
    assert data.sizes == {"train": 2, "val": 1, "test": 1}


def test_columns_and_files_of_a_graph_that_are_not_read_are_named(graph: Path) -> None:
    (graph / "edges.csv").write_text("source,target,weight\na,b,1\nb,c,1\nc,d,1\n")
    (graph / "readme.txt").touch()
    notes = graph_data.load(f"{graph}/").notes
    assert any("edges.csv" in note and "weight" in note for note in notes)
    assert any("readme.txt" in note for note in notes)


def test_a_column_that_is_missing_is_expected_and_not_guessed(graph: Path) -> None:
    (graph / "labels.csv").write_text("0,c0\na,x\n")
    with pytest.raises(TiebreakError) as caught:
        read_graph(graph)
    message = str(caught.value).removeprefix(f"{graph.parent}/").replace(graph.name, "graph")
    assert message in PAGE
    assert "did you mean" not in message


def test_the_pairs_and_scores_of_the_page_are_read(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text(blocks("tsv")[0])
    assert read_pairs(tmp_path / "pairs.tsv").pairs == [("good morning", "buenos días"), ("thank you", "gracias")]
    (tmp_path / "scores.csv").write_text(blocks("csv")[4])
    assert list(read_scores(tmp_path / "scores.csv")) == ["pool", "strided"]


def test_the_texts_of_the_page_are_read(tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text(blocks("csv")[0])
    assert [row.label for row in read_labelled(tmp_path / "texts.csv")] == ["positive", "negative"]


def test_the_options_of_the_page_exist() -> None:
    assert "resize" in registry.TASKS["classify"].options
    assert {"level", "vocabulary"} <= registry.TASKS["language"].options.keys()
