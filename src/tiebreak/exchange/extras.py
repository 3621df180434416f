"""Libraries of other tools, which are extras: imported when needed, or one line that says what to install."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from types import ModuleType

from tiebreak.errors import TiebreakError

QUIET = {  # telemetry and crash reports of MLflow and W&B
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "WANDB_ERROR_REPORTING": "false",
    "DO_NOT_TRACK": "true",
}


def require(module: str, extra: str, what: str) -> ModuleType:
    """Import a module of an extra; `what` needs it. The library is told to send nothing home."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    logging.getLogger(module.partition(".")[0]).setLevel(logging.WARNING)
    try:
        return import_module(module)
    except ImportError as error:
        raise TiebreakError(
            f"{what} needs {module.partition('.')[0]} ({error}); install it with: pip install 'tiebreak[{extra}]'"
        ) from None
