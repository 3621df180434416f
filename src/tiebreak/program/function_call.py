"""The process of one call: imports the user's function, calls it, writes what it returns. Its output is the log."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiebreak.program.calls import call


def find_function(reference: str, folder: str) -> Callable[..., Any]:
    """The function that `module:name` stands for; modules in `folder` are found first."""
    module, _, name = reference.partition(":")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def main() -> None:
    """Do the call that the first argument describes."""
    order = json.loads(sys.argv[1])
    function = find_function(order["function"], order["folder"])
    call(function, order["values"], seed=order["seed"], out=Path(order["out"]))


if __name__ == "__main__":
    main()
