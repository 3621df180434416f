"""Whether the user allows a study's program to run: its command is run with all the user's rights.

Nobody can tell from a file who wrote it. So every command counts as a stranger's until the user has allowed it once on
this machine: by `--allow-program`, or by the answer to a question on the terminal. The digest of the command, with the
texts that arms put in (a text may be the program itself), and of its folder is then remembered in the user's
configuration folder. Results folders hold no such permission.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import digest
from tiebreak.study.command_template import fill, names_in
from tiebreak.study.program_rules import command_of, program_line
from tiebreak.study.schema import Arm, Study
from tiebreak.text import listed

ALLOWED_FILE = "allowed-programs"


def require_consent(study: Study, *, allow: bool) -> None:
    """Raise unless the user allows the study's commands, now or earlier; remember that they do."""
    if allow:
        _remember(study)
    elif not is_allowed(study):
        lines = listed([repr(line) for line in commands(study)])
        raise TiebreakError(
            f"study {study.name}: would run {lines} with all your rights; read it, then give "
            "--allow-program (tb.run: allow_program=True); it is remembered"
        )


def commands(study: Study) -> list[str]:
    """The commands of a study, each once, as the user should see them: with the texts that the arms put in."""
    return list(dict.fromkeys(_line(study, arm) for arm in study.arms))


def _line(study: Study, arm: Arm) -> str:
    assert study.program is not None
    command = command_of(study.program, arm)
    if not command:
        return program_line(study, arm)
    texts = {name: value for name, value in arm.with_values.items() if isinstance(value, str)}
    kept = {name: f"{{{name}}}" for name in names_in(command)}  # numbers, and what each run has of its own
    return shlex.join(fill(argument, {**kept, **texts}) for argument in command)


def is_allowed(study: Study) -> bool:
    """Whether the user has allowed the commands earlier."""
    path = _path()
    return path.is_file() and _digest(study) in files.read_text(path).split()


def _remember(study: Study) -> None:
    if not is_allowed(study):
        path = _path()
        before = files.read_text(path) if path.is_file() else ""
        files.write(path, f"{before}{_digest(study)}\n")


def _digest(study: Study) -> str:
    assert study.program is not None
    return digest([study.program.folder, [_line(study, arm) for arm in study.arms]])


def _path() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "tiebreak" / ALLOWED_FILE
