"""Options that take no value show no type in the help, whichever version of typer prints it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tiebreak.cli.app import app


@pytest.mark.parametrize("command", [[], ["run"], ["verdict"], ["data"], ["data", "list"]])
def test_a_flag_has_no_type_in_the_help(command: list[str]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"]).output
    assert "--help" in shown
    assert "<bool>" not in shown
