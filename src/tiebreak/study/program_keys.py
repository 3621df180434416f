"""The `[program]` table of a study file: how the user's own training program is run, and what it leaves behind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from tiebreak.study.base import Strict
from tiebreak.study.registry import Goal, MetricEntry, Protocol, TaskEntry

PROGRAM = "program"  # the name of the task
OWN = "the program's own"  # data and protocol of a program: Tiebreak does not see them
UNITS = {"s": 1, "sec": 1, "min": 60, "h": 3600, "d": 86400}
KNOWN_GOALS: Mapping[str, Goal] = {  # metrics whose direction is clear by their name
    **dict.fromkeys(("accuracy", "acc", "exact", "f1", "auc", "auroc", "auprc", "precision", "recall"), "max"),
    **dict.fromkeys(("bleu", "rouge", "rouge1", "rougeL", "map", "iou", "dice", "r2", "cosine", "jaccard"), "max"),
    **dict.fromkeys(("loss", "nll", "perplexity", "error", "cer", "wer", "mse", "rmse", "mae", "brier"), "min"),
}


def seconds(text: str) -> float:
    """A length of time in seconds.

    >>> seconds("2 h"), seconds("90min"), seconds("0.5 s")
    (7200.0, 5400.0, 0.5)
    """
    found = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]+)\s*", text)
    if found is None or found[2] not in UNITS or float(found[1]) <= 0:
        raise ValueError(f"should be a number with one of the units {', '.join(UNITS)}, such as '2 h', not {text!r}")
    return float(found[1]) * UNITS[found[2]]


def _is_duration(value: Any) -> Any:
    if isinstance(value, str):
        seconds(value)
    return value


def _is_goal(value: Any) -> Any:
    for goal in value.values() if isinstance(value, dict) else () if value is None else (value,):
        if goal not in ("max", "min"):
            raise ValueError(f"should be 'max' or 'min', or a table of them by metric, not {goal!r}")
    return value


Command = Annotated[tuple[str, ...], Field(min_length=1, strict=False)]
Duration = Annotated[str, BeforeValidator(_is_duration)]
File = Annotated[str, Field(min_length=1, max_length=200)]


class Program(Strict):
    """Your own training program, with `task = "program"`: a command, or a Python function. See own-program.md."""

    command: Command | None = Field(
        default=None,
        description="the command as a list of arguments, run without a shell; {arm}, {seed}, {out}, {python} and the "
        "names of the grid and of the arms' `with` are replaced by their values, {{ stands for a brace",
        examples=[["{python}", "train.py", "--arch", "{arch}", "--seed", "{seed}", "--out", "{out}"]],
    )
    function: str | None = Field(
        default=None,
        description="instead of a command: a Python function, called with the values",
        examples=["my_module:train"],
    )
    folder: str = Field(default=".", description="where the command runs, relative to this file", examples=["code"])
    scores: File = Field(
        default="scores.json",
        description='the file that the program leaves in {out}: {"val": {METRIC: …}, "test": {METRIC: …}} as JSON',
        examples=["scores.json"],
    )
    epochs: File | None = Field(
        default=None,
        description="a file in {out} with learning curves: one JSON object for each epoch, a line each",
        examples=["metrics.jsonl"],
    )
    outcomes: File | None = Field(
        default=None,
        description="an npz file in {out} with an outcome for each test example, by the metric's name",
        examples=["outcomes.npz"],
    )
    timeout: Duration | None = Field(
        default=None,
        description="the longest that one run may take; then it is ended and has failed",
        examples=["2 h"],
    )
    cores: Annotated[int, Field(ge=1, le=4096)] = Field(
        default=1, description="CPU cores of one run: they decide how many runs there are at a time", examples=[2]
    )
    gpus: Annotated[float, Field(ge=0, le=64, allow_inf_nan=False)] = Field(
        default=0,
        description="GPUs of one run, by CUDA_VISIBLE_DEVICES: 0.25 puts four runs on each; 0: runs see no GPU",
        examples=[0.25],
    )
    goal: Annotated[Goal | dict[str, Goal] | None, BeforeValidator(_is_goal)] = Field(
        default=None,
        description="whether more or less of the metric is better, or a table of that by metric; needed for names "
        "that Tiebreak does not know",
        examples=["max"],
    )
    in_process: bool = Field(
        default=False,
        description="written by tb.compare for functions that only the calling process has",
        examples=[False],
    )
    source: str = Field(
        default="", description="written by tb.compare: the hash of such a function's text", examples=["0123abcd"]
    )

    def goals(self, metric: str) -> dict[str, Goal]:
        """The known directions; `metric` is the study's own."""
        own = self.goal if isinstance(self.goal, dict) else {} if self.goal is None else {metric: self.goal}
        return {**KNOWN_GOALS, **own}

    def entry(self, metric: str) -> TaskEntry:
        """The program as a task: its metrics are means over the test examples unless the scores say otherwise."""
        metrics = {name: MetricEntry(goal=goal) for name, goal in self.goals(metric).items()}
        return TaskEntry(
            family=PROGRAM,
            line="your own training program",
            metrics=metrics,
            options={},
            evaluation={},
            protocols={OWN: Protocol()},
        )


def program_defaults(data: Mapping[str, Any]) -> dict[str, Any]:
    """A study of a program with what it does not write: data, protocol and budget are the program's own."""
    filled = {"data": OWN, "protocol": OWN, "budget": {"epochs": 1, "batch": 1}, **data}
    if isinstance(data.get("arms"), list):
        named = [arm if isinstance(arm, dict) else {} for arm in data["arms"]]
        filled["arms"] = [{"design": str(arm.get("name")), **arm} for arm in named]
    return filled
