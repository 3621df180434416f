"""Records that are intact but do not fit their plan: made by a stranger, or by a version of Tiebreak with a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tiebreak.errors import TiebreakError, describe_error


@contextmanager
def explain_misfit(study: str) -> Iterator[None]:
    """A lookup or computation that fails on the records (no such metric, an array of another shape) as one line."""
    try:
        yield
    except TiebreakError:
        raise
    except (ArithmeticError, LookupError, OSError, TypeError, ValueError) as error:
        raise TiebreakError(
            f"study {study}: its records do not fit its plan: {describe_error(error, None)}; do not trust this folder, "
            "or report a mistake of Tiebreak if it is your own"
        ) from error
