"""Seconds from the command to the first trained step: a user's residual network, with empty and with full caches.

    python benchmarks/start.py [--runs 20] [--device cuda] [--precision tf32] [--out FILE]
    python benchmarks/start.py --smoke            four runs on a CPU: that it works

Each start is a process of its own that does what `tiebreak run` does, on the embedded digits, batch 64, Adam, half of
the runs with another learning rate (one cohort). `empty` is the first start, with caches of kernels, of compiled
programs and of data in new folders; `full` is the same again in another results folder. A row has the seconds since
the process was started when each message arrived; training begins when the strategies are known, and the first step is
done before the first message of training. Then the process is stopped. Python's modules are read from disk as the
machine has them: a first start after booting takes longer.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from peers.own_designs import Block, ResNet

HEADER = """
from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.models.design import Images
"""
DESIGN = """
class Residual(ResNet):
    def __init__(self, shape: Images) -> None:
        super().__init__(shape, nn.BatchNorm2d)


DESIGNS = {"residual": Residual}
"""
STUDY = """
name = "start"
question = "How long does it take until training begins?"
task = "classify"
data = "mnist5k"
metric = "accuracy"
margin = 0.01
seeds = %d
designs_from = "my_nets.py"

[budget]
epochs = %d
batch = 64

[optimiser]
kind = "adam"

[[arms]]
name = "slow"
design = "residual"
fixed = { lr = 0.001 }

[[arms]]
name = "fast"
design = "residual"
fixed = { lr = 0.003 }

[[comparisons]]
a = "slow"
b = "fast"
"""
CACHES = ("TIEBREAK_CACHE", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")
TRAINING = ("Progress", "EpochDone")


def child(study: Path, out: Path, device: Any, precision: Any, began: float) -> None:
    """Do what the command does, print when each kind of message came first, and stop at the first one of training."""
    from tiebreak import api
    from tiebreak.drive.machine import Machine

    marks = {"imported": round(time.time() - began, 2)}

    def listen(message: Any) -> None:
        text = getattr(message, "text", "")
        name = next((each for each in ("timing", "fused", "one after the other") if each in text), message.kind)
        marks.setdefault(name, round(time.time() - began, 2))
        if message.kind in TRAINING or message.kind == "RunEnded":
            print(json.dumps({**marks, "ended": message.kind}), flush=True)
            os._exit(0)  # the workers end with it

    api.run(study, out, machine=Machine(device=device, precision=precision), listen=listen)


def start(given: argparse.Namespace, study: Path, out: Path) -> dict[str, Any]:
    """One start."""
    command = [sys.executable, __file__, "--child", str(study), str(out), given.device, given.precision]
    done = subprocess.run([*command, repr(time.time())], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    marks: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if marks["ended"] == "RunEnded":
        raise SystemExit(f"nothing was trained: {marks}")
    return {
        "read": marks["imported"],
        "timing begins": marks.get("timing"),
        "training begins": marks.get("TrainingStarted"),
        "first message of training": min(marks[each] for each in TRAINING if each in marks),
    }


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], sys.argv[5], float(sys.argv[6]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="tf32", choices=["float32", "tf32", "bf16"])
    parser.add_argument("--out", type=Path, help="rows as JSON, written after every start")
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args()
    if given.smoke:
        given.runs, given.device, given.precision = 4, "cpu", "float32"
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        classes = "\n\n".join(inspect.getsource(each) for each in (Block, ResNet))
        (folder / "my_nets.py").write_text(HEADER + "\n\n" + classes + "\n\n" + DESIGN, "utf-8")
        (folder / "start.toml").write_text(STUDY % (given.runs // 2, 20), "utf-8")
        os.environ.update({name: str(folder / name) for name in CACHES})
        for caches in ("empty", "full"):
            row = start(given, folder / "start.toml", folder / caches)
            rows.append({"benchmark": "start", "n": given.runs, "device": given.device, "precision": given.precision,
                         "caches": caches, **row})  # fmt: skip
            print(json.dumps(rows[-1]), flush=True)
            if given.out:
                given.out.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
