"""Study files: strict TOML becomes a checked model, or a one-line error that names the file and the key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import tomli_w
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tiebreak import files
from tiebreak.errors import TiebreakError, nearest
from tiebreak.study import registry
from tiebreak.study.base import NAME_WORDS
from tiebreak.study.comparison_kinds import DEFAULT_NAMES

ModelT = TypeVar("ModelT", bound=BaseModel)

MOST_SHOWN = 3  # problems of a file in one line

MESSAGES = {  # by pydantic's error type, where the words of a study file are clearer
    "missing": "this key is required",
    "extra_forbidden": "unknown key",
    "model_type": "should be a table",
    "dict_type": "should be a table",
    "tuple_type": "should be a list",
    "too_short": "should not be empty",
    "string_pattern_mismatch": f"should be {NAME_WORDS}",
}


def builtin_names() -> list[str]:
    """The studies that ship with Tiebreak."""
    folder = resources.files("tiebreak.study") / "studies"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def template() -> dict[str, Any]:
    """The content of the study file that `tiebreak new` writes."""
    return tomllib.loads(template_text())


def template_text(file: str = "template.toml") -> str:
    """That file itself, or another one to start from; the study's name in it is NAME."""
    return (resources.files("tiebreak.study") / file).read_text("utf-8")


def copy_of_builtin(source: str, name: str) -> str:
    """The text of a built-in study as a file of its own called `name`."""
    if source not in builtin_names():
        raise TiebreakError(f"--from {source}: not a built-in study; there are {', '.join(builtin_names())}")
    text = find(source)[0].replace(f'name = "{source}"', f'name = "{name}"', 1)
    return re.sub(rf"tiebreak (run|plan) {re.escape(source)}(?![\w-])", rf"tiebreak \1 {name}.toml", text)


def find(name: str) -> tuple[str, str]:
    """The text of a built-in study or of a study file, and its name for messages."""
    if name in builtin_names():
        return (resources.files("tiebreak.study") / "studies" / f"{name}.toml").read_text("utf-8"), f"study {name}"
    path = Path(name)
    if path.suffix != ".toml" and not _is_file(path):
        raise TiebreakError(
            f"no study {name!r}; {nearest(name, builtin_names())} (your own study: a path that ends in .toml)"
        )
    return files.read_text(path), str(path)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long for one
        return False


def load_toml(text: str, where: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        raise TiebreakError(f"{where}: not valid TOML: {error}") from None
    except RecursionError:
        raise TiebreakError(f"{where}: not valid TOML: nested too deeply") from None


def with_absolute_paths(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The content with absolute paths; those of a study file are relative to its folder."""
    found = dict(content)
    for key in ("designs_from", "data"):
        value = content.get(key)
        if isinstance(value, str) and (key == "designs_from" or (registry.is_path(value) and "program" not in content)):
            if "\0" in value:
                raise TiebreakError(f"{key}: a NUL character in the path {value!r}; write it without")
            found[key] = str((folder / value).resolve())
    program = content.get("program")
    if isinstance(program, dict) and isinstance(program.get("folder", "."), str):
        found["program"] = {**program, "folder": str((folder / program.get("folder", ".")).resolve())}
    return found


def validate(model: type[ModelT], content: Mapping[str, Any], where: str) -> ModelT:
    """The model that `content` describes, or a TiebreakError that names `where` and the key."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise TiebreakError(f"{where}: {explain(error)}") from None


def explain(error: ValidationError) -> str:
    """Pydantic's errors as one line: for each of the first few, the key and what is wrong with it."""
    found = error.errors(include_url=False)
    shown = "; ".join(f"{_key(each)}{_message(each)}" for each in found[:MOST_SHOWN])
    more = len(found) - MOST_SHOWN
    line = f"{shown} (and {more} more)" if more > 0 else shown
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)


def _key(item: ErrorDetails) -> str:
    key = ""
    for part in item["loc"]:
        if isinstance(part, int):
            key += f"[{part + 1}]"
        # pydantic adds the kind of a comparison to the location; the file has no such key
        elif not (part in DEFAULT_NAMES and key.startswith("comparisons[") and key.endswith("]")):
            key += f".{part}" if key else part
    return f"{key}: " if key else ""


def _message(item: ErrorDetails) -> str:
    kind = item["type"]
    message = MESSAGES.get(kind) or item["msg"].removeprefix("Value error, ").replace("Input should", "should")
    return (
        message
        if kind in ("missing", "extra_forbidden", "value_error", "json_invalid")
        else f"{message}{_not_value(item.get('input'))}"
    )


def _not_value(value: Any) -> str:
    """ ", not VALUE" for a value that is short enough."""
    if not isinstance(value, str | int | float) or (isinstance(value, int) and value.bit_length() > 128):
        return ""
    return f", not {text}" if len(text := repr(value)) <= 80 else ""


def to_toml(model: BaseModel) -> str:
    """The resolved study file: every default written out. Keys that are None are omitted, since TOML has no null."""
    return tomli_w.dumps(model.model_dump(mode="json", exclude_none=True))


def grid_values(text: str) -> tuple[str, tuple[float, ...]]:
    """The values of a hyper-parameter as `--grid` takes them.

    >>> grid_values("lr=0.1,0.03")
    ('lr', (0.1, 0.03))
    """
    name, _, values = text.partition("=")
    try:
        return name.strip(), tuple(map(_grid_value, values.split(",")))
    except ValueError:
        raise TiebreakError(f"--grid {text}: should be a name and numbers, such as lr=0.1,0.03,0.01") from None


def _grid_value(text: str) -> float:
    """A number; an integer stays one, as in a study file."""
    return int(text) if text.strip().lstrip("-").isdecimal() else float(text)
