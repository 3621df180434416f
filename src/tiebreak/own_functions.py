"""`tb.compare`: the user's own training function as the arms of a study, in a script or a notebook.

A study is made of the call, and `api.run` runs it: the same folder, report and resume as `tiebreak run`.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from tiebreak import api
from tiebreak.drive.machine import Machine
from tiebreak.drive.messages import Note
from tiebreak.drive.runner import Listener
from tiebreak.errors import TiebreakError, nearest
from tiebreak.plan.runs import digest
from tiebreak.program.calls import EPOCHS, OUTCOMES, SCORES
from tiebreak.program.function_reference import Reference, check_arguments, reference
from tiebreak.program.function_source import source_hash
from tiebreak.study import parsing
from tiebreak.study.registry import Goal, Scalar
from tiebreak.study.schema import Study

Train = Callable[..., Any]
SEEDS = 10  # where nothing is said


class Options(TypedDict, total=False):
    """What `compare` takes beside the question itself."""

    goal: Goal | dict[str, Goal]  # for metrics whose direction we do not know
    baseline: str  # compare every arm with this one; default: all pairs
    question: str
    name: str  # of the study; default: the function's
    timeout: str  # such as "2 h"; only in worker processes
    cores: int
    gpus: float
    workers: int  # processes at most
    until_decided: bool  # seeds in batches until every pair of arms is decided, instead of `seeds`
    max_seeds: int  # the most that these are; default: 60
    listen: Listener  # gets every message instead of the terminal


def compare(
    train: Train | Mapping[str, Train],
    *,
    metric: str,
    margin: float,
    out: str | Path,
    arms: Mapping[str, Mapping[str, Scalar]] | None = None,
    grid: Mapping[str, Sequence[float]] | None = None,
    seeds: int | None = None,
    **options: Unpack[Options],
) -> api.Result:
    """Train every arm with every setting of the grid and every seed (ten if none are given), and decide.

    `train(seed, …)` gets the values of its arm and of the grid by name. It returns {"val": {metric: …}, "test":
    {metric: …}}, or yields a dict of metrics for each epoch. A mapping instead of one function gives each arm its own.
    A function that can be imported is called in worker processes; any other in this process, one call at a time.
    """
    for name in options:
        if name not in Options.__annotations__:
            raise TiebreakError(f"compare: no argument {name!r}; {nearest(name, Options.__annotations__)}")
    if not isinstance(asked := options.get("until_decided", False), bool):
        raise TiebreakError(f"compare: until_decided should be True or False, not {asked!r}")
    growing = asked or options.get("max_seeds") is not None
    if growing and seeds is not None:
        raise TiebreakError(f"compare: seeds={seeds} with until_decided: give max_seeds={seeds} for the most to train")
    functions = _functions(train, arms)
    values = {name: {key: _plain(each) for key, each in (arms or {}).get(name, {}).items()} for name in functions}
    grid = {name: [_plain(value) for value in each] for name, each in (grid or {}).items()}
    for name, function in functions.items():
        check_arguments(function, {*values[name], *grid}, name)
    for name, each in grid.items():
        if not all(type(value) in (int, float) for value in each):
            raise TiebreakError(f"grid: {name} should be a list of numbers; give texts and switches as arms instead")
    found = {name: reference(function) for name, function in functions.items()}
    here = next((each for each in found.values() if each.why_here or each.folder != _folder(found)), None)
    program = _program(options, found, functions, here)
    local = _local(found, functions)
    content = {
        "name": options.get("name") or _study_name(train),
        "question": options.get("question") or f"Which is better: {', '.join(functions)}?",
        "task": "program",
        "metric": metric,
        "margin": margin,
        "seeds": SEEDS if seeds is None else seeds,
        "program": program,
        "grid": grid,
        "arms": [
            {"name": name, "with": values[name], "function": found[name].name if here is None else local[name]}
            for name in functions
        ],
        "comparisons": _comparisons(list(functions), options.get("baseline")),
    }
    study = parsing.validate(Study, content, "compare").growing(
        until_decided=options.get("until_decided", False), max_seeds=options.get("max_seeds"), comparisons="all"
    )
    return _run(study, out, options, functions if here is not None else None, here)


def _run(
    study: Study, out: str | Path, options: Options, calls: Mapping[str, Train] | None, here: Reference | None
) -> api.Result:
    from tiebreak.cli.progress import progress_listener

    machine = Machine(workers=options.get("workers"))
    with progress_listener(Path(out), file=sys.stdout) as progress:  # not where the output of a call goes
        listen = options.get("listen") or progress.on_message
        if here is not None:
            why = here.why_here or "the functions lie in different folders"
            listen(Note(text=f"{here.name} runs in this process, one call at a time: {why}"))
        return api.run(study, out, machine=machine, listen=listen, calls=calls or {})


def _functions(train: Train | Mapping[str, Train], arms: Mapping[str, Mapping[str, Scalar]] | None) -> dict[str, Train]:
    """The function of every arm."""
    if isinstance(train, Mapping):
        for name in arms or {}:
            if name not in train:
                raise TiebreakError(f"arms: no function for arm {name!r}; {nearest(name, train)}")
        functions = dict(train)
    else:
        functions = dict.fromkeys(arms or {}, train)
    for name, function in functions.items():
        if not callable(function):
            raise TiebreakError(f"train: should be a function, or a dict of them by arm, not {function!r} ({name})")
    if len(functions) < 2:
        raise TiebreakError(f"arms: a comparison takes two, not {len(functions)}")
    return functions


def _program(
    options: Options, found: Mapping[str, Reference], functions: Mapping[str, Train], here: Reference | None
) -> dict[str, Any]:
    """The `[program]` table of the study."""
    program: dict[str, Any] = {"scores": SCORES, "epochs": EPOCHS, "outcomes": OUTCOMES, "folder": str(Path.cwd())}
    program |= {key: options[key] for key in ("goal", "timeout", "cores", "gpus") if key in options}
    if here is None:
        return {**program, "folder": _folder(found)}
    if "timeout" in options:
        raise TiebreakError(f"timeout: cannot be kept in this process, where {here.name} runs ({here.why_here})")
    hashes = sorted({source_hash(function) for function in functions.values()})
    return {**program, "in_process": True, "source": hashes[0] if len(hashes) == 1 else digest(hashes)}


def _folder(found: Mapping[str, Reference]) -> str:
    return next(iter(found.values())).folder


def _local(found: Mapping[str, Reference], functions: Mapping[str, Train]) -> dict[str, str]:
    """The names, by arm, of functions in a study file that only this process can run: different for different ones."""
    names = {arm: each.name.rpartition(":")[2] for arm, each in found.items()}
    same = {name: {id(functions[arm]) for arm in names if names[arm] == name} for name in names.values()}
    return {arm: f"{name} of {arm}" if len(same[name]) > 1 else name for arm, name in names.items()}


def _plain(value: Any) -> Any:
    """A number of numpy as Python's own."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def _study_name(train: Train | Mapping[str, Train]) -> str:
    name = "functions" if isinstance(train, Mapping) else getattr(train, "__name__", "function")
    return name if name.isidentifier() and not name.startswith("_") else "function"


def _comparisons(arms: list[str], baseline: str | None) -> list[dict[str, Any]]:
    """All pairs, or every arm with the baseline; the first is the primary one."""
    if baseline is not None and baseline not in arms:
        raise TiebreakError(f"baseline: no arm {baseline!r}; {nearest(baseline, arms)}")
    pairs = [(arm, baseline) for arm in arms if arm != baseline] if baseline else itertools.combinations(arms, 2)
    return [{"a": a, "b": b, "primary": number == 0} for number, (a, b) in enumerate(pairs)]
