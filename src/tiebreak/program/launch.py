"""Starting one run of a program under its supervisor, and hearing from it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO

from tiebreak.plan.runs import Run
from tiebreak.program.supervisor import Ended, Order
from tiebreak.study.command_template import fill
from tiebreak.study.program_rules import command_of, function_of
from tiebreak.study.registry import Scalar
from tiebreak.study.schema import Arm, Study
from tiebreak.system import python


def command_line(study: Study, arm: Arm, run: Run, out: Path) -> list[str]:
    """The command of a run, with its values; of a function, the process that calls it."""
    assert study.program is not None
    values: dict[str, Scalar] = {**run.build, **run.options}
    command = command_of(study.program, arm)
    if command:
        given = {**values, "arm": arm.name, "seed": run.seed, "out": str(out), "python": sys.executable}
        return [fill(argument, given) for argument in command]
    call = {
        "function": function_of(study.program, arm),
        "folder": study.program.folder,
        "values": values,
        "seed": run.seed,
        "out": str(out),
    }
    return [*python("tiebreak.program.function_call"), json.dumps(call)]


def other_python(study: Study) -> str:
    """A line where a command's `python` is not the one that runs us: its packages may be others. Empty elsewhere."""
    assert study.program is not None
    for arm in study.arms:
        name = next(iter(command_of(study.program, arm) or ()), "")
        found = shutil.which(name) if re.fullmatch(r"python[0-9.]*", name) else None
        if found and Path(found).parent != Path(sys.executable).parent:
            return f"{name} is {found}, not {sys.executable}, which runs Tiebreak: write {{python}} if that is meant"
    return ""


class Launched:
    """A supervisor at work."""

    def __init__(self, order: Order) -> None:
        self._process = subprocess.Popen(
            python("tiebreak.program.supervisor"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # ^C is for the driver, which ends the others
        )
        with suppress(BrokenPipeError):
            self._orders.write(json.dumps(asdict(order)).encode() + b"\n")
            self._orders.flush()

    @property
    def _orders(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def report(self) -> IO[bytes]:
        """Readable when the run has ended."""
        assert self._process.stdout is not None
        return self._process.stdout

    def stop(self) -> None:
        """Have the program and its group ended."""
        with suppress(BrokenPipeError):
            self._orders.close()

    def wait(self) -> Ended:
        """How the run ended."""
        line = self.report.read()
        self.stop()
        self.report.close()
        code = self._process.wait()
        if not line:
            return Ended(code=code, seconds=0.0, problem=f"the process that supervises it ended with code {code}")
        return Ended(**json.loads(line))
