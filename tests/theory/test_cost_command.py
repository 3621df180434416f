"""`tiebreak cost`, called as the console script calls it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tiebreak.cli import app
from tiebreak.study import registry
from tiebreak.theory import sweep
from tiebreak.theory.parts import PARTS, find_part

Cost = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cost(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cost:
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tiebreak", "cost", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            app.main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return call


def test_alone_it_lists_every_part(cost: Cost) -> None:
    code, out, err = cost()
    assert (code, err) == (0, "")
    assert all(re.search(rf"^{name} ", out, re.M) for name in (*PARTS, *registry.DESIGNS))
    for match in re.finditer(r"\bR[0-4]\b", " ".join(out.split())):
        before = " ".join(out.split())[: match.start()].split()
        assert {"report", "reports"} & {word.strip("(") for word in before[-3:]}, before[-5:]


def test_two_parts_measured_and_plotted(cost: Cost, tmp_path: Path) -> None:
    figure = tmp_path / "plot.svg"
    code, out, err = cost(
        "attention", "--vary", "L=32..128", "--against", "taylor", "--set", "D=4", "--set", "V=4", "--out", figure
    )
    assert (code, err) == (0, "")
    for expected in (
        r"multiply-adds +2 D L² +O\(L²\) +131,072 +the same +2.00 ± 0.00",
        r"multiply-adds +2 L \(V \+ 1\) C\(D \+ K - 1, K - 1\) +O\(L\) +19,200 +the same +1.00 ± 0.00",
        r"kept for gradient +L \(4 D \+ 1\) +O\(L\) +2,176 +the same",
        r"streaming state +\(V \+ 1\) C\(D \+ K - 1, K - 1\) +O\(1\) +75 +– +0.00",
        r"time +of a forward pass, one thread .*s +– +-?\d\.\d\d ± ",
        r"peak memory +beyond inputs and parameters",
        r"^ *64 +32.8 k .*s .*B +9.6 k .*s .*B",
        r"● attention   ○ taylor",
        r"is faster (from L ≈ [\d,]+ on|throughout)",
    ):
        assert re.search(expected, out, re.M), expected
    assert figure.read_text("utf-8").startswith("<?xml")


def test_formulas_alone_need_no_torch() -> None:
    code = "import sys; from tiebreak.cli.app import main; sys.argv = {argv}; main()"
    argv = ["tiebreak", "cost", "attention", "--against", "taylor", "--no-measure", "--vary", "L=256..16384"]
    script = f"import atexit, sys; atexit.register(lambda: print('torch' in sys.modules)); {code.format(argv=argv)}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "False"
    assert re.search(r"taylor .*from L ≈ 2,200 on", done.stdout)


def test_no_crossover_is_said_so(cost: Cost) -> None:
    _, out, _ = cost("conv-net", "--against", "dense-net", "--no-measure", "--vary", "H=16..64")
    assert re.search(r"no crossover.*conv-net", out)


@pytest.mark.parametrize("name", ["transformer", "gcn", "translator-attention", "speech-attention"])
def test_a_design_without_a_formula_is_counted_and_measured(cost: Cost, name: str) -> None:
    part = find_part(name)
    low = part.variables[part.vary].least + 6
    code, out, err = cost(name, "--vary", f"{part.vary}={low}..{low + 1}")
    assert (code, err) == (0, "")
    assert f"{name} has no formula" in out
    assert "unknown" not in out
    for row in ("parameters", "multiply-adds", "kept for gradient", "time", "peak memory"):
        assert re.search(rf"^{row} ", out, re.M)


def test_a_design_by_itself_and_its_letters(cost: Cost) -> None:
    code, out, _ = cost("mlp", "--vary", "H=16..20", "--set", "W=16")
    assert code == 0
    assert "h = max(1, round(" in " ".join(out.split())
    assert "exponent in H" in out
    assert "unknown" not in out


def test_even_terms_are_a_note(cost: Cost, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiebreak.layers import taylor_checks

    monkeypatch.setattr(taylor_checks, "_warned", set())
    code, out, err = cost("taylor", "--vary", "L=8..16", "--set", "K=2", "--set", "D=2")
    assert (code, err) == (0, "")
    assert re.search(r"note: .*2 is even", out)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["atention"], ["'atention'", "'attention'"]),
        (["attention", "--against", "tailor"], ["'tailor'", "'taylor'"]),
        (["attention", "--vary", "Q=1..8"], ["attention", "'Q'", "L (length), D (width"]),
        (["attention", "--set", "Q=1"], ["attention", "'Q'"]),
        (["attention", "--vary", "L=256"], ["--vary L=256:", "--vary L=256..4096"]),
        (["attention", "--vary", "L=9..3"], ["--vary L=9..3:", "go up"]),
        (["attention", "--against", "mlp"], ["mlp", "'L'", "C (channels)"]),
        (["attention-naive", "--vary", "L=1024..1048576"], ["attention-naive", "GB"]),
        (["attention", "--out", "plot.pdf"], ["--out plot.pdf", ".svg or .png"]),
        (["--vary", "L=1..8"], ["PART", "`tiebreak cost`"]),
        (["multi-head", "--set", "h=3", "--vary", "L=2..4"], ["3 heads"]),
        (["cnn-pool", "--vary", "H=2..4"], ["smaller than"]),
        (["graph", "--vary", "E=100..200", "--set", "n=5"], ["5 nodes", "10 edges"]),
        (["gcn", "--no-measure"], ["gcn has no formula"]),
        (["gcn", "--against", "graph", "--vary", "Z"], ["graph", "'Z'"]),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    cost: Cost, arguments: list[str], parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "free_bytes", lambda: 16 * 10**9)
    code, out, err = cost(*arguments)
    assert code == 2
    assert out == ""
    assert all(part in err for part in parts), err
    assert err.startswith("tiebreak: ")
    assert err.count("\n") == 1
