"""Rules of a study with `task = "program"`: every placeholder has a value, every value has a placeholder.

Every rule raises ValueError with the key first; `parsing` adds the file.
"""

from __future__ import annotations

import math
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pydantic import BaseModel

from tiebreak.errors import nearest
from tiebreak.study.command_template import NAME, RESERVED, fill, names_in, placeholders
from tiebreak.study.program_keys import OWN, Program

if TYPE_CHECKING:
    from tiebreak.study.schema import Arm, Study

STUDY_KEYS = {"name", "question", "task", "data", "metric", "margin", "seeds", "about", "program", "grid", "arms"}
STUDY_KEYS |= {"comparisons", "quick", "until_decided"}
ARM_KEYS = {"name", "with_values", "command", "function", "grid"}
QUICK_KEYS = {"seeds", "grid", "without"}
FILLED = {"protocol": OWN, "budget": {"epochs": 1, "batch": 1}}  # what a resolved study file holds for a program
FLAGS = ("-u", "-I", "-S", "-B", "-O", "-OO", "-E", "-s", "-P", "-e", "-x")  # of interpreters: a script may follow them
INTERPRETERS = ("python", "python3", "bash", "sh", "Rscript", "julia", "node", "perl", "ruby")


def check(study: Study) -> None:
    """Raise ValueError at the first rule that a study of a program breaks."""
    program = study.program
    if program is None:
        raise ValueError("program: this table is required with task = 'program'")
    _only("", study, STUDY_KEYS, FILLED)
    _only("quick.", study.quick, QUICK_KEYS, {})
    _check_program(study, program)
    if study.metric not in program.goals(study.metric):
        raise ValueError(f"program.goal: is more {study.metric} better (goal = 'max') or less (goal = 'min')?")
    for key, grid in (("grid", study.grid), ("quick.grid", study.quick.grid or {})):
        _check_grid(key, grid)
    for index, arm in enumerate(study.arms, start=1):
        _check_grid(f"arms[{index}].grid", arm.grid or {})
        _check_arm(f"arms[{index}]", arm, study, program)
    _check_difference(study, program)
    for index, item in enumerate(study.comparisons, start=1):
        if item.kind == "agreement":
            raise ValueError(f"comparisons[{index}].kind: 'agreement' is not for a program: its epochs are its own")


def command_of(program: Program, arm: Arm) -> tuple[str, ...]:
    """The command of an arm: its own, or the study's; empty where the arm is a function."""
    return arm.command or (() if arm.function else program.command or ())


def function_of(program: Program, arm: Arm) -> str:
    """The function of an arm: its own, or the study's; empty where the arm is a command."""
    return arm.function or ("" if arm.command else program.function or "")


def program_line(study: Study, arm: Arm) -> str:
    """What an arm of a study of a program runs, in one line."""
    assert study.program is not None
    command = command_of(study.program, arm)
    return shlex.join(command) if command else f"function {function_of(study.program, arm)}"


def _only(prefix: str, model: BaseModel, allowed: set[str], filled: Mapping[str, object]) -> None:
    """Refuse keys that mean nothing for a program, unless they have their default."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        value = value.model_dump(exclude_defaults=True) if isinstance(value, BaseModel) else value
        default = filled.get(name, field.get_default(call_default_factory=True))
        default = default.model_dump(exclude_defaults=True) if isinstance(default, BaseModel) else default
        if name not in allowed and value != default:
            raise ValueError(
                f"{prefix}{name}: not for a program, which has its own; write it into the command, or use `with`"
            )


def _check_program(study: Study, program: Program) -> None:
    commands = [program.command is not None, program.function is not None]
    if all(commands):
        raise ValueError("program: command and function are both given; keep one")
    if not any(commands) and not all(arm.command or arm.function for arm in study.arms):
        raise ValueError("program.command: required, unless every arm has a command of its own")
    for key in ("scores", "epochs", "outcomes"):
        name = getattr(program, key)
        path = PurePosixPath(name or "x")
        if path.is_absolute() or ".." in path.parts or "\0" in str(path) or "\\" in str(path):
            raise ValueError(f"program.{key}: {name!r} should be a file in {{out}}, such as 'scores.json'")
    if program.gpus > 1 and program.gpus != int(program.gpus):
        raise ValueError(f"program.gpus: {program.gpus:g}: a part of one GPU (0.25), or whole ones (2)")


def _check_grid(key: str, grid: Mapping[str, Sequence[float]]) -> None:
    for name, values in grid.items():
        if name in RESERVED:
            raise ValueError(f"{key}.{name}: {{{name}}} is given by Tiebreak; choose another name")
        if not NAME.fullmatch(name):
            raise ValueError(f"{key}.{name}: should be a plain name, so that {{{name}}} is a placeholder")
        if len(set(values)) != len(values):
            raise ValueError(f"{key}.{name}: a value occurs twice in {', '.join(map(str, values))}; remove one")
        if not all(map(math.isfinite, values)):
            raise ValueError(f"{key}.{name}: should be finite numbers")


def _check_arm(key: str, arm: Arm, study: Study, program: Program) -> None:
    _only(f"{key}.", arm, ARM_KEYS, {"design": arm.name})
    if arm.command and arm.function:
        raise ValueError(f"{key}: command and function are both given; keep one")
    for name in arm.with_values:
        if name in RESERVED:
            raise ValueError(f"{key}.with.{name}: {{{name}}} is given by Tiebreak; choose another name")
        if name in study.grid_of(arm):
            raise ValueError(f"{key}.with.{name}: also in the grid; remove one of the two")
    command = command_of(program, arm)
    if command:
        _check_command(f"{key}.command" if arm.command else "program.command", command, arm, study)


def _check_command(key: str, command: Sequence[str], arm: Arm, study: Study) -> None:
    grid = study.grid_of(arm)
    known = {*RESERVED, *grid, *arm.with_values}
    for place, argument in enumerate(command, start=1):
        if "\0" in argument:
            raise ValueError(f"{key}[{place}]: a NUL character in {argument!r}; write it without")
        try:
            names = placeholders(argument)
        except ValueError as error:
            raise ValueError(f"{key}[{place}]: {error}") from None
        for name in names:
            if name not in known:
                raise ValueError(
                    f"{key}[{place}]: no value for {{{name}}} in arm {arm.name!r}; add it to the arm's `with` or to "
                    f"the grid ({nearest(name, known)})"
                )
    used = set(names_in(command))
    if "seed" not in used:
        raise ValueError(f"{key}: no {{seed}}: every seed would be the same run; hand it to the program")
    if "out" not in used:
        raise ValueError(f"{key}: no {{out}}: the program has to know the folder where it leaves its scores")
    for name in (*grid, *arm.with_values):
        if name not in used:
            where = f"grid.{name}" if name in grid else f"{key.partition('.')[0]}: with.{name} of {arm.name!r}"
            raise ValueError(f"{where}: the command of arm {arm.name!r} has no {{{name}}}, so the value is not used")


def check_exists(study: Study) -> None:
    """Raise ValueError where a program, or the script that an interpreter is given, is not there.

    Not a rule of the file itself: results can be read where the program is not.
    """
    assert study.program is not None
    folder = Path(study.program.folder)
    if not folder.is_dir():
        raise ValueError(f"program.folder: {str(folder)!r}: no such folder")
    for index, arm in enumerate(study.arms, start=1):
        command = command_of(study.program, arm)
        if command:
            _check_exists(f"arms[{index}].command" if arm.command else "program.command", command, arm, folder)


def _check_exists(key: str, command: Sequence[str], arm: Arm, folder: Path) -> None:
    values = {**arm.with_values, "arm": arm.name}
    if any(set(placeholders(part)) - set(values) for part in command[:1]) and command[0] != "{python}":
        return  # a program that depends on the setting: the run says what is wrong
    head = "" if command[0] == "{python}" else fill(command[0], values)
    if head:
        path = folder / head if "/" in head else None
        if not (path.is_file() and shutil.which(str(path)) if path else shutil.which(head)):
            what = f"{str(path)!r} is no program that can be run" if path else f"no program {head!r} on the PATH"
            hint = "; {python} is the interpreter that runs tiebreak" if head.startswith("python") else ""
            raise ValueError(f"{key}[1]: {what}{hint}")
    if not head or Path(head).name in INTERPRETERS:
        place = next((number for number, each in enumerate(command[1:], start=1) if each not in FLAGS), len(command))
        script = command[place] if place < len(command) else "-"
        if not script.startswith("-") and not set(placeholders(script)) - set(values):
            path = folder / fill(script, values)
            if not path.exists():
                raise ValueError(f"{key}[{place + 1}]: no such file: {str(path)!r}")


def _check_difference(study: Study, program: Program) -> None:
    """Arms that run the same command with the same values would be the same runs."""
    seen: dict[object, str] = {}
    for index, arm in enumerate(study.arms, start=1):
        command, function = command_of(program, arm), function_of(program, arm)
        named = arm.name if "arm" in (names_in(command) if command else ()) else ""
        content = (command, function, tuple(sorted(arm.with_values.items())), named)
        if seen.setdefault(content, arm.name) != arm.name:
            raise ValueError(
                f"arms[{index}]: {arm.name!r} runs the same as {seen[content]!r}; give them different values in "
                "`with`, or use {arm} in the command"
            )
