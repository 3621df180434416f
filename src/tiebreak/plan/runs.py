"""A plan: every run that a study needs, with the identity under which its results are stored. Frozen, no torch."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, ValidationError

from tiebreak import files
from tiebreak.data.speech.front_end import FrontEnd
from tiebreak.errors import TiebreakError
from tiebreak.study import parsing
from tiebreak.study.augment import Augment
from tiebreak.study.base import Exact, Init, RunPrecision, setting_label
from tiebreak.study.optimiser import Optimiser
from tiebreak.study.program_keys import PROGRAM
from tiebreak.study.registry import Goal, Scalar, is_path

PLAN_FILE = "plan.json"
RAN_CODE = "is code and was run with your rights"  # ends a warning in plans of earlier versions
OPTIONAL = (
    "monitor",
    "augment",
    "init",
    "precision",
)  # part of a run's names only where they are set
PROGRAM_IDENTITY = {"task", "source", "build", "options", "seed", "comparability"}  # of a program's run
COHORT_VARIES = {"hypers", "setting", "seed", "epochs", "evaluations"}  # what differs within a cohort


def digest(content: Any) -> str:
    """A short name for content: the first 20 hex digits of the sha256 of its canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


class Monitor(Exact):
    """The validation score that decides during training: when a run stops early, when the rate of `plateau` falls."""

    metric: str
    goal: Goal
    patience: int | None = None  # epochs without a better score after which the run stops; None: it never does


class Run(Exact):
    """One training: everything that determines its numbers, and how the trained network is evaluated.

    `identity` names the run by content. `trajectory` leaves the number of epochs out where the schedule does not
    depend on it, so that a longer run continues a shorter one.
    """

    design: str
    source: str  # digest of the code that decides its numbers, see `code_identity`
    build: dict[str, Scalar]
    task: str
    options: dict[str, Scalar]  # complete: the protocol's and the arm's
    data: str
    checksum: str
    optimiser: Optimiser
    hypers: dict[str, float | None]  # complete; None leaves it to the design
    setting: dict[str, float]
    seed: int
    epochs: int
    batch: int
    comparability: int
    evaluations: tuple[dict[str, Scalar], ...]  # not part of the identity
    monitor: Monitor | None = None  # where validation decides during training
    augment: Augment | None = None  # None: training images are not changed
    init: Init | None = None  # None: as the design initialises itself
    precision: RunPrecision | None = None  # None: float32

    model_config = ConfigDict(strict=False)  # lists of a JSON file become tuples

    @cached_property  # a hash takes 20 µs, and readers ask often
    def trajectory(self) -> str:
        """The identity of the training, whatever its number of epochs."""
        if self.task == PROGRAM:  # all else is a name for people, or has no meaning for a program
            return digest(self.model_dump(mode="json", include=PROGRAM_IDENTITY))
        content = self._content({"evaluations", "epochs", "setting"})
        if self.optimiser.schedule.depends_on_budget():
            content["epochs"] = self.epochs
        return digest(content)

    @cached_property
    def identity(self) -> str:
        """The name under which the run's results are stored."""
        return digest([self.trajectory, self.epochs])

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some values replaced, whose names are computed anew."""
        copy = super().model_copy(update=update, deep=deep)
        for name in ("trajectory", "identity"):
            copy.__dict__.pop(name, None)
        return copy

    @property
    def without_code(self) -> str:
        """A name that stays when the code changes: the run is trained again, but the same is asked of the same seed."""
        return digest([self.design, self.model_copy(update={"source": "", "comparability": 0}).identity])

    @property
    def most_epochs(self) -> float:
        """The last epoch that belongs to the run; a program decides by itself how many it reports."""
        return math.inf if self.task == PROGRAM else self.epochs

    @property
    def cohort(self) -> str:
        """The common name of all runs that can be trained as one computation with this one: only numbers differ."""
        return digest(self._content(COHORT_VARIES))

    def _content(self, without: set[str]) -> dict[str, Any]:
        """What a name is made of. A key that is not set is left out, so that keys added later change no name."""
        content = self.model_dump(mode="json", exclude={*without, "optimiser"})
        content = {name: value for name, value in content.items() if name not in OPTIONAL or value is not None}
        content["optimiser"] = self.optimiser.model_dump(mode="json", exclude_none=True)
        if is_path(self.data):  # the checksum identifies it; moving the folder changes nothing
            del content["data"]
        return content

    @property
    def label(self) -> str:
        """The name of the run in messages."""
        return f"{self.design} {setting_label(self.setting)} seed {self.seed}"


COHORT_SHARES = tuple(name for name in Run.model_fields if name not in {*COHORT_VARIES, "optimiser"})


def evaluation_key(evaluation: Mapping[str, Scalar]) -> str:
    """The name of an evaluation: `default`, or its options."""
    return " ".join(f"{key}={evaluation[key]}" for key in sorted(evaluation)) or "default"


def cohorts(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The runs by cohort, in the order given."""
    found: dict[str, list[Run]] = {}
    names: dict[str, str] = {}  # a name is a hash: computed once for runs whose content is written alike
    for run in runs:
        content = repr([getattr(run, name) for name in COHORT_SHARES]) + run.optimiser.model_dump_json()
        if content not in names:
            names[content] = run.cohort
        found.setdefault(names[content], []).append(run)
    return found


def cohort_names(groups: Mapping[str, Sequence[Run]]) -> dict[str, str]:
    """Names of cohorts for people: the design, and the options in which cohorts of one design differ."""
    first = {key: runs[0] for key, runs in groups.items()}
    found = {}
    for key, run in first.items():
        own = _distinguishing(run)
        others = [_distinguishing(other) for other in first.values() if other.design == run.design]
        apart = [name for name in own if any(other.get(name) != own[name] for other in others)]
        found[key] = " ".join([run.design, *(f"{name}={own[name]}" for name in apart)])
    return found


def _distinguishing(run: Run) -> dict[str, Scalar]:
    """The options in which cohorts of one design can differ."""
    rule = {"optimiser": run.optimiser.kind, "schedule": run.optimiser.schedule.kind}
    augment = {"augment": run.augment.text()} if run.augment is not None else {}
    named = {"init": run.init, "precision": run.precision}
    own = {name: value for name, value in named.items() if value is not None}
    return {**run.build, **run.options, "batch": run.batch, **rule, **augment, **own}


class Difference(Exact):
    """One thing in which an arm differs from the first arm of its study. None: this side does not have it."""

    kind: str  # design, build, options, optimiser, schedule, hypers, grid, evaluation, budget, protocol, …
    name: str
    first: Scalar | None
    own: Scalar | None

    @property
    def text(self) -> str:
        """The difference for readers, such as `optimiser adam instead of sgd`."""
        if self.kind == "grid" and self.own is None:
            return f"{self.name} not tuned instead of tuned over {_value(self.first)}"
        if self.name == self.kind:
            text = f"{self.name} {_value(self.own)}"
        elif self.kind == "grid":
            text = f"{self.name} tuned over {_value(self.own)}"
        else:
            text = f"{BEFORE.get(self.kind, '')}{self.name}={_value(self.own)}"
        nothing = self.first is None and (self.kind, self.name) not in OF_DESIGN
        return text if nothing else f"{text} instead of {_value(self.first)}"


OF_DESIGN = {("hypers", "dropout"), ("init", "init")}  # a study that does not set it leaves it to the design
BEFORE = {"evaluation": "tested with ", "build": "built with ", "schedule": "schedule with "}  # before a name


def _value(value: Scalar | None) -> str:
    return "the design's own" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


class PlannedArm(Exact):
    """An arm's share of the plan."""

    name: str
    design: str
    evaluation: str
    runs: dict[str, str]  # "setting label/seed" -> identity
    parameters: int | None  # None: unknown, of a program
    flops: int | None  # multiply-adds times two for one example; None: unknown
    cannot_fuse: str = ""  # why its runs are trained one after the other; empty: they can be fused
    run_by_run: str = ""  # operations that fused runs do one after the other, with their layers
    shape: dict[str, int | str] = Field(default_factory=dict)  # the sizes that its network is built for
    differences: tuple[Difference, ...] | None = Field(default=None, strict=False)  # from the first; None: not known
    code: dict[str, str] = Field(default_factory=dict)  # digests of the code of its design, its task and the training

    def run(self, setting: Mapping[str, float], seed: int) -> str:
        """The identity of the arm's run at a setting and a seed."""
        return self.runs[run_key(setting, seed)]

    def fits(self, key: str, run: Run | None) -> bool:
        """Whether the run can be the one that the arm has under this key."""
        if run is None or run.design != self.design or run_key(run.setting, run.seed) != key:
            return False
        return self.evaluation in map(evaluation_key, run.evaluations)


def run_key(setting: Mapping[str, float], seed: int) -> str:
    """The key of `PlannedArm.runs`."""
    return f"{setting_label(setting)}/{seed}"


class Term(Exact):
    """One of the terms of a comparison: its name, whether it is equal for all arms, and its value."""

    name: str
    equal: bool | None  # None: not checked, it is the program's own
    value: str

    @property
    def state(self) -> str:
        """`equal`, `not equal` or `not checked`."""
        return {True: "equal", False: "not equal", None: "not checked"}[self.equal]


class DataSummary(Exact):
    """The data that the plan was made for."""

    name: str
    checksum: str
    official: bool | None  # None: no published checksum to compare with
    sizes: dict[str, int]
    licence: str
    citation: str
    vocabulary: dict[str, Annotated[tuple[str, ...], Field(strict=False)]] = Field(
        default_factory=dict
    )  # such as classes
    synthetic: bool = False  # synthetic speech
    front_end: FrontEnd | None = None  # of speech: how sound became features
    held: dict[str, int] = Field(default_factory=dict)  # in `unit`, where an example of training is something else
    unit: str = "examples"


class Plan(Exact):
    """What will be trained, on which data and on which terms."""

    study: str
    inputs: str  # digest of study, code and data: the plan is valid while they are unchanged
    data: DataSummary
    designs_from: str | None = None  # the user's Python file
    arms: tuple[PlannedArm, ...]
    runs: dict[str, Run]
    terms: tuple[Term, ...]
    warnings: tuple[str, ...] = ()

    model_config = ConfigDict(strict=False)

    def arm(self, name: str) -> PlannedArm:
        """The planned arm called `name`."""
        return next(arm for arm in self.arms if arm.name == name)

    @classmethod
    def read(cls, folder: Path, *, covered: bool = False) -> Plan:
        """Read the plan of a results folder. Every identity is computed again and compared, unless a digest that was
        kept elsewhere covers the file."""
        path = files.inside(folder, PLAN_FILE)
        if not path.is_file():
            raise TiebreakError(f"{folder}: no {PLAN_FILE}; is this the --out folder of `tiebreak run`?")
        try:
            plan = cls.model_validate_json(files.read_text(path))
        except ValidationError as error:
            raise TiebreakError(f"{path}: {parsing.explain(error)}; run the study again to rewrite it") from None
        for identity, run in () if covered else plan.runs.items():
            if run.identity != identity:
                raise TiebreakError(
                    f"{path}: run {identity} was changed by hand: its content is {run.identity}; run the study again"
                )
        for arm in plan.arms:
            if not all(arm.fits(key, plan.runs.get(identity)) for key, identity in arm.runs.items()):
                raise TiebreakError(f"{path}: the runs of arm {arm.name!r} were changed by hand; run the study again")
        return plan
