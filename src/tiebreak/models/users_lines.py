"""The lines of a user's files: what a message names as the place of an error."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from tiebreak.errors import PACKAGE
from tiebreak.layers.global_generators import drawn_from, generator_states

FOREIGN = (PACKAGE, *(Path(sysconfig.get_path(kind)) for kind in ("stdlib", "purelib", "platlib")))


def users_line(frames: Iterable[tuple[FrameType, int]]) -> str:
    """The last line in a file that is neither ours nor installed; empty: there is none."""
    places = [(Path(frame.f_code.co_filename), line) for frame, line in frames]
    own = [(path.name, line) for path, line in places if not any(map(path.is_relative_to, FOREIGN)) and path.is_file()]
    return f", at {own[-1][0]}:{own[-1][1]}" if own else ""


def line_here() -> str:
    """The user's line that is being called now; empty: there is none."""
    return users_line(reversed(list(traceback.walk_stack(None))))


def drawing_line(call: Callable[[], Any]) -> str:
    """The user's line in which a call draws from a global generator; empty: none, this time."""
    last, found = "", ""
    before = generator_states()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal last, found
        here = users_line([(frame, frame.f_lineno)])
        if found or not here:
            return None
        if last and drawn_from(before):
            found = last
        caller = frame.f_back if event == "return" else None  # the rest of its line comes without an event
        last = here if caller is None else users_line([(caller, caller.f_lineno)])
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Exception:  # it may raise anything, also since it is called once more: then nothing is told
        return found
    finally:
        sys.settrace(outer)
    return found or (last if drawn_from(before) else "")


def error_line(error: Exception) -> str:
    """An error of a user's function in one line, with the last line of a file of the user's."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{f': {text}' if text else ''}{users_line(traceback.walk_tb(error.__traceback__))}"
