"""The process that calls a function: it imports little, and finds the function in its folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tiebreak.program.function_call import find_function


def test_a_call_in_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine_for_a_call.py").write_text(
        "import sys\n"
        "class Trainer:\n"
        "    @staticmethod\n"
        "    def train(seed, width):\n"
        "        heavy = [name for name in ('torch', 'numpy', 'pydantic') if name in sys.modules]\n"
        "        return {'test': {'accuracy': seed + width, 'heavy': len(heavy)}}\n"
    )
    order = {"function": "mine_for_a_call:Trainer.train", "folder": str(tmp_path), "out": str(tmp_path)}
    order |= {"values": {"width": 2}, "seed": 1}  # type: ignore[dict-item]
    command = [sys.executable, "-m", "tiebreak.program.function_call", json.dumps(order)]
    subprocess.run(command, check=True)
    assert json.loads((tmp_path / "scores.json").read_text()) == {"test": {"accuracy": 3, "heavy": 0}}
    assert find_function("json:dumps", str(tmp_path)) is json.dumps
    sys.path.remove(str(tmp_path))
