"""Every key of a study file, read from the models: its type, default, description, example, and what overrides it."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tiebreak.study.base import NAME_PATTERN, NAME_WORDS
from tiebreak.study.program_keys import Program
from tiebreak.study.registry import Scalar
from tiebreak.study.schema import Arm, Budget, Pair, Quick, Study, UntilDecided

TYPE_WORDS: Mapping[object, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Scalar: "number, text, true or false",
}
BOUND_WORDS = {  # by pydantic's name of the bound: its attribute, and its words
    "Ge": ("ge", "at least {:,}"),
    "Gt": ("gt", "above {:,}"),
    "Le": ("le", "at most {:,}"),
    "Lt": ("lt", "below {:,}"),
    "MaxLen": ("max_length", "at most {:,} characters"),
}
UNRELATED = ("name",)  # keys of several tables that do not override one another
FURTHER_OVERRIDES = {  # besides keys of the same name
    "budget.epochs": "`epochs_times` of an arm",
    "until_decided.max_seeds": "`--max-seeds`",
    "until_decided.comparisons": "`--until-decided`, `--until-all-decided`",
    "arms.build": "`build` and `build_of` of `[quick]`",
}


@dataclass(frozen=True, kw_only=True)
class Key:
    """One key of a table of the study file."""

    name: str
    type: str  # in words
    required: bool
    default: Any
    description: str
    examples: tuple[Any, ...]
    overridden_by: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the study file, such as `[budget]`. `name` is empty for the keys at the top."""

    name: str
    repeated: bool  # `[[arms]]` and not `[arms]`
    kind: str  # of a comparison; empty for other tables
    description: str
    keys: tuple[Key, ...]
    overridden_by: tuple[str, ...]  # as a whole

    @property
    def header(self) -> str:
        """As it is written in the file."""
        return f"[[{self.name}]]" if self.repeated else f"[{self.name}]"


def tables() -> list[Table]:
    """The tables of a study file in the order of the models, the keys at the top first."""
    return list(_tables(Study, "", repeated=False))


def to_toml_value(value: Any) -> str:
    """A value as it is written after `key =`, tables inline.

    >>> to_toml_value({"lr": [0.1, 1e-05], "kind": "cosine", "deep": True})
    '{ lr = [0.1, 1e-05], kind = "cosine", deep = true }'
    """
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {to_toml_value(each)}' for key, each in value.items())} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(to_toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _tables(model: type[BaseModel], name: str, *, repeated: bool, kind: str = "") -> Iterator[Table]:
    inner = {key: found for key, field in model.model_fields.items() if (found := _inner(field, repeated))}
    keys = tuple(_key(model, name, key, field) for key, field in model.model_fields.items() if key not in inner)
    description = " ".join(inspect.cleandoc(model.__doc__ or "").split())
    overridden = tuple(_overrides(Study, "", name)) if name else ()
    yield Table(name=name, repeated=repeated, kind=kind, description=description, keys=keys, overridden_by=overridden)
    for key, (models, is_list) in inner.items():
        place = f"{name}.{key}" if name else key
        for each in models:
            of_kind = get_args(each.model_fields["kind"].annotation)[0] if len(models) > 1 else ""
            yield from _tables(each, place, repeated=is_list, kind=of_kind)


def _inner(field: FieldInfo, in_list: bool) -> tuple[list[type[BaseModel]], bool] | None:
    """The models of a key that is a table of its own, and whether it may be repeated; None for any other key."""
    annotation = field.annotation
    if get_origin(annotation) is tuple:
        models = _models(get_args(annotation)[0])
        return (models, True) if models else None
    tables = {Program, UntilDecided}  # of the study
    optional = type(None) in get_args(annotation) and not tables & set(get_args(annotation))
    if in_list or optional:  # written inline, such as the optimiser of an arm
        return None
    models = _models(annotation)
    return (models, False) if models else None


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) is Annotated:
        return _models(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [model for each in get_args(annotation) for model in _models(each)]
    return []


def _key(model: type[BaseModel], table: str, name: str, field: FieldInfo) -> Key:
    required = field.is_required()
    return Key(
        name=field.alias or name,
        type=", ".join([_words(field.annotation), *_bounds(field.metadata)]),
        required=required,
        default=None if required else field.get_default(call_default_factory=True),
        description=field.description or "",
        examples=tuple(field.examples or ()),
        overridden_by=tuple(_overrides(model, table, name)),
    )


def _overrides(model: type[BaseModel], table: str, name: str) -> Iterator[str]:
    """What may replace or extend the key's value: an arm, a comparison, `[quick]`, the command line."""
    if model in (Study, Budget) and name not in UNRELATED:
        if name in Arm.model_fields:
            yield f"`{name}` of an arm"
        if name in Pair.model_fields:
            yield f"`{name}` of a comparison"
        if name in Quick.model_fields:
            yield f"`{name}` of `[quick]`"
        if name in inspect.signature(Study.changed).parameters:
            yield f"`--{name.replace('_', '-')}`"
    if further := FURTHER_OVERRIDES.get(f"{table}.{name}"):
        yield further


def _words(annotation: Any) -> str:
    """A type in words."""
    if annotation in TYPE_WORDS:
        return TYPE_WORDS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return ", ".join([_words(arguments[0]), *_bounds(list(arguments[1:]))])
    if origin is Literal:
        return " or ".join(f"`{to_toml_value(each)}`" for each in arguments)
    if origin is tuple:
        return f"list ({_words(arguments[0])})"
    if origin is dict:
        return f"table ({_words(arguments[1])})"
    return " or ".join(_words(each) for each in arguments if each is not type(None))


def _bounds(metadata: list[Any]) -> list[str]:
    """The bounds of a type in words, also those that pydantic keeps in a Field."""
    found = []
    for each in metadata:
        if isinstance(each, FieldInfo):
            found += _bounds(each.metadata)
        elif getattr(each, "pattern", None) == NAME_PATTERN:
            found.append(f"of {NAME_WORDS}")
        elif type(each).__name__ in BOUND_WORDS:
            attribute, words = BOUND_WORDS[type(each).__name__]
            found.append(words.format(getattr(each, attribute)))
    return found
