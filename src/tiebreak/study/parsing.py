"""Strict TOML: a study file becomes a checked model, or one line that says which key of which file is wrong."""

from __future__ import annotations

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

ModelT = TypeVar("ModelT", bound=BaseModel)

# pydantic puts a union's tag into the location; files have no such key
UNION_TAGS = ("pair", "interaction", "setting", "order", "agreement")
COMPLAINTS = {  # pydantic's complaints, where the words of a study file are clearer
    "missing": "this key is required",
    "model_type": "should be a table",
    "dict_type": "should be a table",
    "tuple_type": "should be a list",
    "too_short": "should not be empty",
    "string_pattern_mismatch": "should be letters, digits, '.', '_' and '-', with a letter or digit in front",
}


def builtin_names() -> list[str]:
    """The studies that ship with Tiebreak."""
    folder = resources.files("tiebreak.study") / "studies"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def find(name: str) -> tuple[str, str]:
    """The text of a built-in study or of a `.toml` file, and how to call it in messages."""
    if name in builtin_names():
        return (resources.files("tiebreak.study") / "studies" / f"{name}.toml").read_text("utf-8"), f"study {name}"
    path = Path(name)
    if path.suffix != ".toml" and not _is_file(path):
        raise TiebreakError(f"no study {name!r}; {nearest(name, builtin_names())} (a file's name ends in .toml)")
    return files.read_text(path), str(path)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long for one
        return False


def parse(model: type[ModelT], text: str, where: str) -> ModelT:
    """The model that `text` describes, or a TiebreakError that names the file and the key."""
    return validate(model, load_toml(text, where), where)


def load_toml(text: str, where: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        raise TiebreakError(f"{where}: not valid TOML: {error}") from None
    except RecursionError:
        raise TiebreakError(f"{where}: not valid TOML: nested too deeply") from None


def placed(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The content with its paths made absolute: in a study file they are relative to its folder."""
    found = dict(content)
    for key in ("designs_from", "data"):
        value = content.get(key)
        if isinstance(value, str) and (key == "designs_from" or registry.is_path(value)):
            found[key] = str((folder / value).resolve())
    return found


def validate(model: type[ModelT], content: Mapping[str, Any], where: str) -> ModelT:
    """The model that `content` describes, or a TiebreakError that names `where` and the key."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise TiebreakError(f"{where}: {explain(error)}") from None


def explain(error: ValidationError) -> str:
    """Pydantic's first complaint as one line: which key, and what is wrong with it."""
    first, *others = error.errors(include_url=False)
    more = f" (and {len(others)} more)" if others else ""
    line = f"{_key(first)}{_complaint(first)}{more}"
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)


def _key(item: ErrorDetails) -> str:
    shown = ""
    for part in item["loc"]:
        if isinstance(part, int):
            shown += f"[{part + 1}]"
        elif not (part in UNION_TAGS and shown.startswith("comparisons[") and shown.endswith("]")):
            shown += f".{part}" if shown else part
    return f"{shown}: " if shown else ""


def _complaint(item: ErrorDetails) -> str:
    kind = item["type"]
    message = COMPLAINTS.get(kind) or item["msg"].removeprefix("Value error, ").replace("Input should", "should")
    return message if kind in ("missing", "value_error", "json_invalid") else f"{message}{_given(item.get('input'))}"


def _given(value: Any) -> str:
    """What was there instead, if it is short enough to be shown."""
    if not isinstance(value, str | int | float) or (isinstance(value, int) and value.bit_length() > 128):
        return ""
    return f", not {shown}" if len(shown := repr(value)) <= 80 else ""


def to_toml(model: BaseModel) -> str:
    """The resolved file: every default written out. Keys that are None are left out, since TOML has no null."""
    return tomli_w.dumps(model.model_dump(mode="json", exclude_none=True))
