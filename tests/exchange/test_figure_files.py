from __future__ import annotations

import base64

from tiebreak.exchange.export_content import ExportContent
from tiebreak.exchange.figure_files import add_legend, figure_files
from tiebreak.report.figures import drawing
from tiebreak.verdict.scores import Scores
from tiebreak.verdict.table_verdict import TableQuestion, table_verdict

PIXELS = b"\x89PNG not really"
SETS: dict[str, Scores] = {"": {"a": {0: 1.0, 1: 2.0}, "b": {0: 2.0, 1: 1.0}}}


def draw() -> str:
    with drawing.style():
        for name in ("narrow-0", "wide-0", "curves"):
            figure, axes = drawing.sheet(200, 100, drawing.Margins())
            axes.plot([0, 1], [1, 0], color=drawing.colour(0))
            axes.axvspan(0, 1, color=drawing.RULE)
            axes.text(0, 0, "text", bbox={"facecolor": drawing.PAPER})
            drawing.to_svg(figure, name=name, label="a figure")
    return f'<img src="data:image/png;base64,{base64.b64encode(PIXELS).decode()}">'


def content() -> ExportContent:
    verdict = table_verdict(SETS, TableQuestion(name="t", margin=0.1))
    return ExportContent(verdict=verdict, answer="", scores=[], page=draw, names=["a", "b"])


def test_figures_are_recoloured_for_paper_and_those_of_a_phone_left_out() -> None:
    with drawing.collected() as outside:
        files = figure_files(content(), "svg")
    assert set(files) == {"difference-0.svg", "curves.svg"}
    assert files["curves.svg"].label == "a figure"
    text = files["curves.svg"].data.decode()
    assert "#dddddd" in text
    assert not any(stand_in in text for stand_in in (drawing.RULE, drawing.PAPER))
    assert outside == []  # each collection has its own


def test_pixels_of_the_page_are_files_too() -> None:
    files = figure_files(content(), "png")
    assert files["image-001.png"].data == PIXELS


def test_a_legend_names_the_arms_whose_colours_are_drawn_and_are_not_named() -> None:
    with drawing.collected() as drawn:
        draw()
    figure = drawn[-1].figure
    add_legend(figure, ["first arm", "second arm"])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["first arm"]
    add_legend(figure, ["first arm"])  # it is named now
    assert len(figure.legends) == 1


def test_arms_that_share_a_colour_are_told_apart_by_their_markers() -> None:
    again = len(drawing.PALETTE)
    with drawing.style():
        figure, axes = drawing.sheet(200, 100, drawing.Margins())
        axes.plot([0, 1], [1, 0], drawing.marker(again), color=drawing.colour(again))
    add_legend(figure, [f"{place} is an arm" for place in range(again + 1)])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"{again} is an arm"]
