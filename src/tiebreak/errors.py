"""Errors that reach users: one line with what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tiebreak.text import one_line

MOST_LETTERS = 2000  # of the message of an exception
PACKAGE = Path(__file__).parent


class TiebreakError(ValueError):
    """A mistake in a file, an option or the environment. The command line prints it and exits with code 2."""


class StopStudyError(TiebreakError):
    """An error that every run would meet: no data, no disk space. It stops the study; all others fail one run."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint for a mistyped name: the nearest valid one, or all of them if none is near."""
    known = sorted(valid)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"valid: {', '.join(known)}" if known else "no name is valid here"


def describe_error(error: BaseException, designs_from: str | None) -> str:
    """An exception in one line, with its place: the innermost line of the user's files, else the innermost of all."""
    causes = list(_chain(error))
    frames = [frame for cause in causes for frame in reversed(traceback.extract_tb(cause.__traceback__))]
    frames = _of_user(frames, designs_from) or frames
    text = " ".join(_text(error).split())
    explained = isinstance(error, TiebreakError) and len(causes) > 1  # its text names the type of its cause
    what = text if explained else f"{type(error).__name__}: {text}"
    return f"{what} ({frames[0].filename}:{frames[0].lineno})" if frames else what


@contextmanager
def explain_design_errors(name: str, designs_from: str | None) -> Iterator[None]:
    """Turn whatever a user's design raises into one line with its file and line; our own refusals stay as they are."""
    try:
        yield
    except (Exception, SystemExit) as error:
        own = _of_user([f for each in _chain(error) for f in traceback.extract_tb(each.__traceback__)], designs_from)
        if designs_from is None or (isinstance(error, TiebreakError) and not own):
            raise
        line = describe_error(error, designs_from)
        raise TiebreakError(line if line.startswith("design ") else f"design {name!r}: {line}") from error


def _text(error: BaseException) -> str:
    """What an exception says, shortened: one of a user's own class may say anything, or raise while it does."""
    try:
        return one_line(error, MOST_LETTERS)
    except Exception as another:
        return f"its message cannot be shown: {type(another).__name__}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The causes of an error, the original one first; then the error itself."""
    if error is not None:
        yield from _chain(error.__cause__)
        yield error


def _of_user(frames: list[traceback.FrameSummary], designs_from: str | None) -> list[traceback.FrameSummary]:
    """The frames in the user's design file, or in a module beside it."""
    if designs_from is None:
        return []
    folder = Path(designs_from).resolve().parent
    return [frame for frame in frames if is_user_file(Path(frame.filename).resolve(), folder)]


def is_user_file(path: Path, folder: Path) -> bool:
    """Whether a file is the user's: below the folder of the designs, and neither installed nor one of ours."""
    return path.is_relative_to(folder) and "site-packages" not in path.parts and not path.is_relative_to(PACKAGE)
