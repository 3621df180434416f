"""Calls of functions that only this process has: a notebook's, a closure. One at a time, output to the run's file."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from tiebreak.plan.runs import Run
from tiebreak.program.calls import call
from tiebreak.program.run_folder import RunFolder
from tiebreak.program.supervisor import Ended


def call_in_process(function: Callable[..., Any], run: Run, folder: RunFolder) -> Ended:
    """Call a function here. An exception, or an attempt to leave Python, is a failed run; ^C ends the study."""
    started, code = time.monotonic(), 0
    with folder.log.open("a", encoding="utf-8", errors="replace") as log, redirect_stdout(log), redirect_stderr(log):
        try:
            call(function, {**run.build, **run.options}, seed=run.seed, out=folder.out)
        except (Exception, SystemExit):
            traceback.print_exc(file=log)
            code = 1
    return Ended(code=code, seconds=time.monotonic() - started)
