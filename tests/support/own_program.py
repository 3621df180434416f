"""A small program as the arms of a study: no torch, no import but the standard library's, a few milliseconds a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli_w

from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import Message
from tiebreak.plan.planner import make_plan
from tiebreak.plan.runs import Plan, Run
from tiebreak.program.program_driver import open_program_driver
from tiebreak.study import parsing
from tiebreak.study.schema import Study

PROGRAM = """
import json, os, pathlib, random, subprocess, sys, time
good, seed, out, how = float(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3]), (sys.argv + ["well"])[4]
starts = out / "starts"
starts.write_text(str(int(starts.read_text()) + 1 if starts.exists() else 1))
print("seed", seed, os.environ["CUDA_VISIBLE_DEVICES"], os.environ["OMP_NUM_THREADS"])
if how == "sleep" or (how == "sleep-once" and good > 0.8 and starts.read_text() == "1"):
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])
    (out / "child").write_text(str(child.pid))
    time.sleep(600)
if how == "crash" and seed == 1:
    sys.exit("out of luck")
noise = random.Random(f"{good} {seed}").gauss(0, 0.001)
scores = {"val": {"accuracy": good + noise}, "test": {"accuracy": good - noise, "loss": 0.5}}
if how == "nan" and seed == 1:
    scores["test"]["accuracy"] = float("nan")
if how == "other":
    scores["test"] = {"acc": good}
if how == "same":
    scores["test"] = scores["val"] = {"accuracy": good}
text = "{" if how == "malformed" else json.dumps(scores)
with open(out / "metrics.jsonl", "w") as file:
    for epoch in (1, 2):
        print(json.dumps({"epoch": epoch, "train_loss": 1 / epoch, "val": {"accuracy": good / epoch}}), file=file)
if how != "missing":
    (out / "scores.json").write_text(text)
"""
COMMAND = ["{python}", "-I", "-S", "toy.py", "{good}", "{seed}", "{out}"]


def content(**changes: Any) -> dict[str, Any]:
    """A study file with two arms of the program; `changes` replace whole keys, those of `program` one by one."""
    program = {"command": COMMAND, **changes.pop("program", {})}
    return {
        "name": "toy",
        "question": "Is high better than low?",
        "task": "program",
        "metric": "accuracy",
        "margin": 0.01,
        "seeds": 2,
        "program": {key: value for key, value in program.items() if value is not None},
        "arms": [{"name": "high", "with": {"good": 0.9}}, {"name": "low", "with": {"good": 0.5}}],
        "comparisons": [{"a": "high", "b": "low"}],
        **changes,
    }


def write(folder: Path, **changes: Any) -> Path:
    """The study and its program as files."""
    (folder / "toy.py").write_text(PROGRAM, "utf-8")
    path = folder / "toy.toml"
    path.write_text(tomli_w.dumps(content(**changes)), "utf-8")
    return path


def study(folder: Path, **changes: Any) -> Study:
    """The study, with its program in the folder."""
    return Study.load(str(write(folder, **changes)))


def how(way: str, **changes: Any) -> dict[str, Any]:
    """The changes that make the program behave in a certain way."""
    return {**changes, "program": {"command": [*COMMAND, way], **changes.get("program", {})}}


def checked(**changes: Any) -> Study:
    """The study, without any file."""
    return parsing.validate(Study, content(**changes), "toy.toml")


def run_in(folder: Path, made: Study, workers: int | None = None) -> tuple[Plan, list[Message]]:
    """Run what the folder misses. The plan, and every message."""
    folder.mkdir(exist_ok=True)
    plan, heard = make_plan(made, None), list[Message]()
    with open_program_driver(made, plan, folder, Machine(workers=workers), heard.append) as driver:
        driver.train()
    return plan, heard


def one_run(made: Study) -> Run:
    """The first run of the plan."""
    return next(iter(make_plan(made, None).runs.values()))
