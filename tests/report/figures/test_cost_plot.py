from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from tiebreak.errors import TiebreakError
from tiebreak.report.figures import cost_plot
from tiebreak.report.figures.cost_plot import Plot, Series
from tiebreak.report.terminal import cost_table

XS = [256.0, 512.0, 1024.0, 2048.0, 4096.0]
ONE = Series(name="one", xs=XS, ys=[x**2 * 1e-9 for x in XS])
TWO = Series(name="two", xs=XS[:4], ys=[x * 1e-6 for x in XS[:4]])
PLOT = Plot(series=[ONE, TWO], x_name="L", y_name="time", y_format=cost_table.seconds, crossing=1000.0)


def test_the_plot_in_a_terminal() -> None:
    lines = [line.plain for line in cost_plot.to_text(PLOT)]
    rows = [line[cost_plot.LABELS + 2 :] for line in lines if line[cost_plot.LABELS + 1 : cost_plot.LABELS + 2] in "┤│"]
    rows = [row for row in rows if row][: cost_plot.HEIGHT]
    assert len(rows) == cost_plot.HEIGHT == 16
    assert {len(row) for row in rows} == {cost_plot.WIDTH} == {60}
    assert sum(row.count("●") for row in rows) >= 4
    assert sum(row.count("○") for row in rows) >= 3
    assert rows[0].rstrip().endswith("●")
    assert rows[-1].startswith("●")
    assert "256" in lines[-2]
    assert "4,096" in lines[-2]
    assert any("1 ms ┤" in line for line in lines)
    assert "● one   ○ two" in lines[-1]
    assert max(map(len, lines)) <= 80


def test_equal_values_are_no_problem() -> None:
    flat = Plot(series=[Series(name="flat", xs=[1, 2], ys=[5, 5])], x_name="L", y_name="", y_format=cost_table.scaled)
    assert any("●" in line.plain for line in cost_plot.to_text(flat))


@pytest.mark.parametrize("name", ["plot.svg", "deep/plot.PNG"])
def test_the_plot_in_a_file(name: str, tmp_path: Path) -> None:
    path = cost_plot.write(PLOT, tmp_path / name)
    first = path.read_bytes()
    if path.suffix == ".svg":
        words = " ".join(ElementTree.fromstring(first.decode()).itertext())
        assert all(word in words for word in ("one", "two", "L ≈ 1,000", "10 ms", "4,096", "time"))
    else:
        with Image.open(path) as image:
            assert image.size == (1280, 840)
            assert len(image.convert("RGB").getcolors(2**20) or ()) > 20
    assert cost_plot.write(PLOT, path).read_bytes() == first, "the same each time"


def test_other_kinds_of_files_are_refused() -> None:
    with pytest.raises(TiebreakError, match=r"plot.pdf: should end in .svg or .png"):
        cost_plot.check_path(Path("plot.pdf"))
