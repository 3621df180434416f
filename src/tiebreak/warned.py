"""Warnings of torch and of a user's code: each is said once, in one line, by whichever process met it first."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

HIDDEN = (  # how warnings of torch begin that say how it computes something, about which a user can do nothing
    "enable_nested_tensor is True",
    "LSTM with projections is not supported with oneDNN",
    "Using padding='same' with even kernel lengths",
    "There is a performance drop because we have not yet implemented the batching rule",
)
LONGEST = 300  # characters of a warning
_said: set[str] = set()


def first_time(text: str) -> bool:
    """Whether this process has not said it yet; from now on it has."""
    alike = re.sub(r"\d+", "0", text)  # shapes differ from batch to batch
    new = alike not in _said
    _said.add(alike)
    return new


@contextmanager
def told_warnings(tell: Callable[[str], None]) -> Iterator[None]:
    """Inside, a warning that is new goes to `tell`, which is called where it was raised; HIDDEN ones go nowhere."""

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        said = " ".join(str(message).split()).rstrip(".")
        said = said if len(said) <= LONGEST else f"{said[:LONGEST]} …"
        text = ": ".join(filter(None, (category.__name__, said)))
        if first_time(text):
            tell(text)

    with warnings.catch_warnings():
        for text in HIDDEN:
            warnings.filterwarnings("ignore", text, UserWarning)
        warnings.showwarning = show
        yield
