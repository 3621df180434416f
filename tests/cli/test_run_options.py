"""The options of `run` and `plan`; what the commands do is in test_run_command."""

from __future__ import annotations

import inspect

import pytest
from typer.testing import CliRunner

from tiebreak.cli import plan_command, run_command
from tiebreak.cli.app import app
from tiebreak.drive.machine import Machine
from tiebreak.errors import TiebreakError

GROWING = ("until_decided", "until_all_decided", "max_seeds")
SHARED = ("study", "data", "data_dir", "seeds", *GROWING, "epochs", "grid", "quick", "device", "workers", "out")


def test_run_has_every_option_of_plan() -> None:
    plan, run = (inspect.signature(command).parameters for command in (plan_command.plan, run_command.run))
    assert tuple(plan) == SHARED
    assert set(run) == {*SHARED, "strategy", "precision", "allow_program", "on", "watch", "port"}
    assert all(run[name] == plan[name] for name in plan)


def test_the_options_are_those_of_a_machine() -> None:
    for strategy in run_command.Strategy:
        assert Machine(strategy=strategy.value).strategy == strategy
    for precision in run_command.Precision:
        assert Machine(device="cuda", precision=precision.value).precision == precision
    defaults = inspect.signature(run_command.run).parameters
    assert defaults["strategy"].default == Machine().strategy
    assert defaults["device"].default == Machine().device
    assert defaults["precision"].default == Machine().precision


def test_options_change_the_study() -> None:
    chosen = run_command.chosen_study("pooling", quick=True, data=None, seeds=3, epochs=2, grid=None)
    assert (chosen.seeds, chosen.budget.epochs) == (3, 2)
    assert chosen.data == run_command.chosen_study("pooling", True, None, None, None, None).data


def test_the_grid_is_widened_by_an_option() -> None:
    chosen = run_command.chosen_study("heads", quick=True, data=None, seeds=None, epochs=None, grid=["lr=0.1,0.01"])
    assert chosen.grid == {"lr": (0.1, 0.01)}
    for wrong in ("lr", "lr=", "lr=0.1,fast"):
        with pytest.raises(TiebreakError, match=f"--grid {wrong}"):
            run_command.chosen_study("heads", quick=True, data=None, seeds=None, epochs=None, grid=[wrong])


@pytest.mark.parametrize("name", ["run", "plan"])
def test_both_are_commands_of_the_app(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"])
    assert shown.exit_code == 0
    assert "--quick" in shown.output
