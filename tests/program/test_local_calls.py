"""Calls in this process: output to the file, exceptions are failed runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from support import own_program
from tiebreak.program.local_calls import call_in_process
from tiebreak.program.run_folder import RunFolder


def test_output_and_exceptions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = own_program.one_run(own_program.study(tmp_path))
    folder = RunFolder(tmp_path, run.identity)
    start = folder.prepare()

    def train(seed: int, good: float) -> dict[str, Any]:
        print("working on", seed)
        if good == 0.9:
            raise ValueError("bad luck")
        return {"test": {"accuracy": good}}

    assert call_in_process(train, run, folder).code == 1
    assert "working on 0" in folder.tail(start)
    assert folder.tail(start).splitlines()[-1] == "ValueError: bad luck"
    assert capsys.readouterr().out == ""
    assert call_in_process(lambda seed, good: sys.exit(0), run, folder).code == 1
    assert call_in_process(train, run.model_copy(update={"build": {"good": 1.0}}), folder).code == 0
