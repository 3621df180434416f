"""A design of the catalog takes three files: its network, its name in the registry, its line in the catalog."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.throwaway_design import DESIGN, LINE, NAME
from tiebreak import catalog
from tiebreak.cli import app
from tiebreak.plan.planner import make_plan
from tiebreak.plan.predict import predict
from tiebreak.study import registry
from tiebreak.study.schema import Study

TESTS = Path(__file__).parents[1]
# Every test that runs over all designs or all names, apart from the costly ones of training.
ALL_DESIGNS = ("contract/test_designs.py", "contract/test_costs.py", "study/test_registry.py", "test_catalog.py")


@pytest.fixture
def throwaway(monkeypatch: pytest.MonkeyPatch) -> None:
    """The design in the catalog, for one test."""
    monkeypatch.setitem(catalog.DESIGNS, NAME, DESIGN)
    monkeypatch.setitem(registry.DESIGNS, NAME, LINE)


def test_a_design_without_a_formula_passes_every_test_over_all_designs() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "support.throwaway_design", "-p", "no:cacheprovider"]
    chosen = ["-k", f"{NAME} or registry or catalog", "-m", "not slow and not gpu and not browser"]
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*command, *chosen, *(str(TESTS / name) for name in ALL_DESIGNS)],
        cwd=TESTS.parent,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 15


@pytest.mark.usefixtures("throwaway")
def test_its_cost_is_counted_and_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def cost(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tiebreak", "cost", *arguments])
        with pytest.raises(SystemExit) as ended:
            app.main()
        return int(ended.value.code or 0), *capsys.readouterr()

    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = cost(NAME, "--vary", "H=16..64", "--set", "W=8", "--set", "Y=3")
    assert (code, err) == (0, "")
    parameters, work = 6 * 10 + 3 * 7, 32 * 8 * 6 * 9 + 6 * 3  # at H = 32, next to the default
    for expected in (
        rf"parameters .* {parameters} +0.00",
        rf"multiply-adds .* {work:,} +1.00",
        r"kept for gradient .* [\d,]+ +\d\.\d\d",
        r"time .*s +– +-?\d\.\d\d",
        r"peak memory .*B +– +-?\d\.\d\d",
        rf"{NAME} has no formula",
    ):
        assert re.search(expected, out), expected
    assert re.search(rf"^{NAME} +one convolution", cost()[1], re.M)
    code, _, err = cost(NAME, "--no-measure")
    assert code == 2
    assert f"{NAME} has no formula" in err
    code, out, _ = cost(NAME, "--against", "cnn-pool", "--vary", "H=16..32", "--set", "W=16")
    assert code == 0
    assert f"● {NAME}   ○ cnn-pool" in out


@pytest.mark.usefixtures("throwaway")
def test_it_can_be_planned(tiny_study: Callable[..., Study], tiny_data_dir: Path) -> None:
    arms = [{"name": "new", "design": NAME}, {"name": "pool", "design": "cnn-pool"}]
    plan = make_plan(tiny_study(arms=arms, comparisons=[{"a": "new", "b": "pool"}]), tiny_data_dir)
    assert NAME in {run.design for run in plan.runs.values()}
    cohorts = {cohort.name: cohort for cohort in predict(plan).cohorts}
    assert cohorts[NAME].parameters == 6 * 10 + 2 * 7
