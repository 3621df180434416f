"""The hash of a function that only this process has: its text, and what it uses from outside where that can be told.

Numbers and texts that it uses from outside count, and so do functions and classes that are defined beside it (a helper
in another cell of a notebook). Other objects, such as arrays and lists, are not looked at, nor are variables that the
function itself changes.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any

from tiebreak.errors import TiebreakError

SIMPLE = (int, float, complex, str, bytes, bool, type(None))


def source_hash(function: Callable[..., Any]) -> str:
    """A hash of the function's text and of the plain values and helpers that it uses."""
    return hashlib.sha256("\0".join(_parts(function, set())).encode()).hexdigest()[:20]


def _parts(function: Any, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    if isinstance(function, functools.partial):
        values = {str(place): each for place, each in enumerate(function.args)} | function.keywords
        yield from _values(values, None, seen)
        yield from _parts(function.func, seen)
        return
    target = inspect.unwrap(function)
    if not (inspect.isroutine(target) or inspect.isclass(target)):  # an object that can be called
        yield from _values(getattr(target, "__dict__", {}), None, seen)
        target = type(target)
    yield _text(target)
    code = getattr(target, "__code__", None)
    if code is not None:
        yield from _values(_outside(target, code), target.__module__, seen)


def _text(target: Any) -> str:
    """The text of a function or class, or its code where the text is not known."""
    try:
        return inspect.getsource(target)
    except (OSError, TypeError):
        code = getattr(target, "__code__", None)
        if code is None:
            raise TiebreakError(f"train: {target!r} has no source that can be read; define it with def") from None
        return f"{code.co_code.hex()} {code.co_consts!r} {code.co_names!r}"


def _outside(function: Any, code: CodeType) -> dict[str, Any]:
    """The variables of other scopes that a function reads and does not change, with their values now."""
    found: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    read, changed = set[str](), set[str]()
    for each in _codes(code):
        for step in dis.get_instructions(each):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                read.add(step.argval)
            elif step.opname in ("STORE_GLOBAL", "STORE_DEREF"):
                changed.add(step.argval)
    found |= {name: function.__globals__[name] for name in read if name in function.__globals__}
    return {name: value for name, value in found.items() if name not in changed}


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function and of those inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _values(values: Mapping[str, Any], module: str | None, seen: set[int]) -> Iterator[str]:
    for name, value in sorted(values.items()):
        if isinstance(value, SIMPLE) or (isinstance(value, tuple) and all(isinstance(each, SIMPLE) for each in value)):
            yield f"{name} = {value!r}"
        elif (inspect.isfunction(value) or inspect.isclass(value)) and (
            module is None or getattr(value, "__module__", "") == module
        ):
            try:
                yield from _parts(value, seen)
            except TiebreakError:  # a class of a session whose text is not known
                continue
