"""The question on the terminal before a study's own program is run for the first time."""

from __future__ import annotations

import sys

import typer

from tiebreak.cli.output import print_line
from tiebreak.program.consent import commands, is_allowed
from tiebreak.study.schema import Study


def asked(study: Study) -> bool:
    """Whether the user allows the study's commands, on a terminal; elsewhere nobody is asked, and nothing allowed."""
    if is_allowed(study) or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    assert study.program is not None
    print_line(f"study {study.name} runs, in {study.program.folder}, with all your rights:")
    for line in commands(study):
        print_line(f"  {line}")
    return typer.confirm("run it?", default=False, err=True)
