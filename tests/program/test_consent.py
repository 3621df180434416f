"""A command is run only after the user has allowed it once on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import own_program
from tiebreak.errors import TiebreakError
from tiebreak.program.consent import commands, is_allowed, require_consent
from tiebreak.study.schema import Study


def test_a_command_is_a_strangers_until_it_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = own_program.study(tmp_path)
    with pytest.raises(TiebreakError, match=r"toy\.py.*--allow-program"):
        require_consent(made, allow=False)
    require_consent(made, allow=True)
    require_consent(made, allow=False)
    require_consent(own_program.study(tmp_path, seeds=5), allow=False)  # the same command
    assert "toy.py" in commands(made)[0]
    changed = own_program.study(tmp_path, program={"command": [*own_program.COMMAND, "--more"]})
    (tmp_path / "elsewhere").mkdir()
    for other in (changed, own_program.study(tmp_path / "elsewhere")):
        assert not is_allowed(other)


def test_texts_that_arms_put_in_are_shown_and_belong_to_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def made(code: str, width: int = 1) -> Study:
        arms = [{"name": name, "with": {"code": code, "width": width + more}} for more, name in enumerate("ab")]
        command = ["sh", "-c", "{code}", "{seed}", "{out}", "{width}"]
        comparisons = [{"a": "a", "b": "b"}]
        return own_program.study(tmp_path, program={"command": command}, arms=arms, comparisons=comparisons)

    require_consent(made("echo"), allow=True)
    assert commands(made("rm -rf ~")) == ["sh -c 'rm -rf ~' '{seed}' '{out}' '{width}'"]
    assert is_allowed(made("echo", width=5))
    assert not is_allowed(made("rm -rf ~"))


def test_the_refusal_names_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    arms = [{"name": "a", "with": {"good": 1}}, {"name": "b", "command": ["rm", "{seed}", "{out}"]}]
    made = own_program.study(tmp_path, arms=arms, comparisons=[{"a": "a", "b": "b"}])
    with pytest.raises(TiebreakError, match=r"toy\.py.* and \"rm"):
        require_consent(made, allow=False)
