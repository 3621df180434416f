"""A study: the question, the arms, the comparisons, what is tuned and what it may cost. Frozen, strict, no torch.

What is compared is an *arm*; what is tuned is a *setting* of the grid; a *seed* is a replicate.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from tiebreak.errors import TiebreakError, nearest
from tiebreak.study import parsing, registry, rules
from tiebreak.study.arm_keys import Arm, Batch
from tiebreak.study.augment import Augment
from tiebreak.study.base import Grid, Init, Margin, Name, Options, RunPrecision, Setting, Strict, setting_label
from tiebreak.study.comparison_kinds import Agreement, BestSetting, Comparison, Interaction, Order, Pair, with_name
from tiebreak.study.optimiser import Optimiser, Schedule
from tiebreak.study.own_task_keys import NO_DATA
from tiebreak.study.own_task_keys import entry as own_task_entry
from tiebreak.study.program_keys import PROGRAM, Program, program_defaults
from tiebreak.study.published import Claim, Reported
from tiebreak.study.registry import OWN_TASK, Scalar

__all__ = [
    "Agreement",
    "Arm",
    "BestSetting",
    "Claim",
    "Comparison",
    "Interaction",
    "Optimiser",
    "Order",
    "Pair",
    "Reported",
    "Schedule",
    "Setting",
    "Strict",
    "Study",
    "UntilDecided",
    "setting_label",
]


Epochs = Annotated[int, Field(ge=1, le=1_000_000)]


class Budget(Strict):
    """Epochs and batch size of every run."""

    epochs: Epochs = Field(description="passes over the training data", examples=[5])
    batch: Batch = Field(description="examples per step", examples=[8])
    equal: Literal["examples", "steps"] = Field(
        default="examples",
        description="what an arm with a batch size of its own shares with the others: `examples`, the same epochs; or "
        "`steps`, epochs in proportion to its batch size",
        examples=["steps"],
    )
    patience: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="early stopping: a run ends after so many epochs without a better validation score (the study's "
        "metric), and the weights of its best epoch are evaluated; without it every run gets all epochs",
        examples=[3],
    )


MOST_SEEDS = 60  # of `--until-decided`, unless told otherwise
SEEDS_LIMIT = 10_000


class UntilDecided(Strict):
    """Train seeds in batches until the question is decided: first the least number, then half as many again."""

    max_seeds: Annotated[int, Field(ge=2, le=SEEDS_LIMIT)] = Field(
        default=MOST_SEEDS, description="where to stop in any case", examples=[40]
    )
    comparisons: Literal["primary", "all"] = Field(
        default="primary", description="which comparisons must be decided", examples=["all"]
    )


class Quick(Strict):
    """What `--quick` changes: a version for embedded data and minutes on two cores."""

    data: str | None = Field(default=None, description="another data set", examples=["mnist5k"])
    protocol: str | None = Field(default=None, description="another protocol", examples=["audited"])
    seeds: Annotated[int, Field(ge=1)] | None = Field(default=None, description="another number of seeds", examples=[6])
    epochs: Epochs | None = Field(default=None, description="another number of epochs", examples=[1])
    batch: Batch | None = Field(default=None, description="another batch size", examples=[8])
    grid: Grid | None = Field(
        default=None, description="another grid, which replaces the whole one", examples=[{"lr": [0.1]}]
    )
    grid_of: dict[str, Grid] = Field(
        default={}, description="another grid of one arm, by the arm's name", examples=[{"adam": {"lr": [0.001]}}]
    )
    without: tuple[str, ...] = Field(
        default=(), strict=False, description="arms to leave out, with their comparisons", examples=[["pool-shuffled"]]
    )
    build: Options = Field(
        default={}, description="options of every arm's design, where the design has them", examples=[{"width": 16}]
    )
    build_of: dict[str, Options] = Field(
        default={}, description="options of one arm's design, by the arm's name", examples=[{"pool": {"width": 16}}]
    )
    options: Options = Field(
        default={},
        description="options of the task; they are added to the study's",
        examples=[{"shuffle_pixels": True}],
    )
    fixed: dict[str, float] = Field(
        default={},
        description="hyper-parameters that are not tuned; they are added to the study's",
        examples=[{"weight_decay": 1e-4}],
    )
    optimiser: Optimiser | None = Field(default=None, description="another optimiser", examples=[{"kind": "adam"}])


class About(Strict):
    """The header of a shipped study: text only, which `tiebreak studies` shows. It changes no number."""

    command: str = Field(
        default="", description="the command to start with", examples=["tiebreak run my-question.toml --quick"]
    )
    time: str = Field(default="", description="how long the study takes", examples=["3 min quick on 2 cores"])
    expected: str = Field(default="", description="the expected answer", examples=["pooling is better by 1 point"])


class Study(Strict):
    """One question and everything needed to answer it."""

    name: Name = Field(description="the study's name; its results go to runs/NAME", examples=["my-question"])
    question: str = Field(
        description="the question in words, as the report shows it",
        examples=["Does max pooling classify better than stride 2?"],
    )
    task: str = Field(description="what the networks do: data, loss, metrics, evaluation", examples=["classify"])
    data: str = Field(
        description="a data set of `tiebreak data list`, or your own as a path with a slash, relative to this file",
        examples=["mnist5k"],
    )
    protocol: str = Field(
        default="audited",
        description="a named set of task options: `audited`, or `as-reported` to repeat what a report did",
        examples=["audited"],
    )
    metric: str = Field(description="the metric that decides, on the test split", examples=["accuracy"])
    margin: Margin = Field(
        description='the smallest difference that matters, in the unit of the metric; smaller ones are "the same"',
        examples=[0.005],
    )
    seeds: Annotated[int, Field(ge=1, le=SEEDS_LIMIT)] = Field(
        description="runs per arm and setting; seed 3 of one arm is compared with seed 3 of the other", examples=[8]
    )
    until_decided: UntilDecided | None = Field(
        default=None, description="train seeds in batches until the question is decided, instead of `seeds`"
    )
    about: About = Field(default=About(), description="text for `tiebreak studies`")
    designs_from: str | None = Field(
        default=None,
        description="a Python file with your own designs in a dict DESIGNS, relative to this file; it is run as code",
        examples=["my_designs.py"],
    )
    metrics: dict[Name, registry.Goal] = Field(
        default={},
        description='with `task = "own"`: the metrics of your task, and whether more (`max`) or less (`min`) is better',
        examples=[{"error": "min"}],
    )
    options: Options = Field(
        default={}, description="options of the task, for all arms", examples=[{"shuffle_pixels": True}]
    )
    budget: Budget = Field(description="epochs and batch size, the same for every run")
    optimiser: Optimiser = Field(default=Optimiser(), description="the update rule and the learning-rate schedule")
    augment: Augment = Field(default=Augment(), description="random changes of training images, for tasks with images")
    init: Init | None = Field(
        default=None,
        description="how weight matrices and filters are drawn (torch.nn.init), with biases at 0; default: as each "
        "design does it",
        examples=["kaiming-normal"],
    )
    precision: RunPrecision = Field(
        default="float32",
        description="what runs compute in; `bfloat16` rounds inside the network only, weights and updates are float32",
        examples=["bfloat16"],
    )
    fixed: dict[str, float] = Field(
        default={}, description="hyper-parameters of every arm that are not tuned", examples=[{"weight_decay": 1e-4}]
    )
    grid: Grid = Field(
        default={},
        description="hyper-parameters that are tuned: every combination of the values is a setting, and each arm's "
        "setting is chosen on validation data",
        examples=[{"lr": [0.1, 0.03]}],
    )
    arms: tuple[Arm, ...] = Field(min_length=1, strict=False, description="what is compared")
    comparisons: tuple[Comparison, ...] = Field(
        min_length=1, strict=False, description="the questions; exactly one is primary"
    )
    claims: tuple[Claim, ...] = Field(
        default=(), strict=False, description="published sentences that a comparison decides"
    )
    reported: tuple[Reported, ...] = Field(
        default=(), strict=False, description="figures published for single runs, shown beside our runs"
    )
    quick: Quick = Field(default=Quick(), description="what `--quick` changes")
    program: Program | None = Field(
        default=None, description='your own training program, with `task = "program"`; see own-program.md'
    )

    @classmethod
    def load(cls, name: str | Path) -> Study:
        """Load a built-in study by name, or a study file by path."""
        text, where = parsing.find(str(name))
        content = parsing.load_toml(text, where)
        return parsing.validate(cls, parsing.with_absolute_paths(content, Path(name).parent), where)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any) -> Any:
        """Write out the defaults that depend on other keys, so that later changes of the study do not affect them."""
        if not isinstance(data, dict):
            return data
        budget = data.get("budget")
        own = {
            "data": data.get("data"),
            "protocol": data.get("protocol", "audited"),
            "epochs": budget.get("epochs") if isinstance(budget, dict) else None,
        }
        filled = program_defaults(data) if PROGRAM in (data.get("task"), *data) else dict(data)
        if data.get("task") == OWN_TASK:
            filled.setdefault("data", NO_DATA)
            own["data"] = filled["data"]
        for key in ("claims", "reported"):
            if isinstance(data.get(key), list):
                filled[key] = [{**own, **item} if isinstance(item, dict) else item for item in data[key]]
        if isinstance(data.get("comparisons"), list):
            filled["comparisons"] = [with_name(item, len(data["comparisons"])) for item in data["comparisons"]]
        return filled

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        rules.check(self)
        return self

    def grid_of(self, arm: Arm) -> Grid:
        """What is tuned for the arm: its own grid, or the study's."""
        return self.grid if arm.grid is None else arm.grid

    def settings(self, arm: Arm | str | None = None) -> list[dict[str, float]]:
        """Every point of the arm's grid, in the order of the file; without an arm, of the study's grid."""
        grid = self.grid if arm is None else self.grid_of(self.arm(arm) if isinstance(arm, str) else arm)
        return [dict(zip(grid, point, strict=True)) for point in itertools.product(*grid.values())]

    def every_setting(self) -> list[dict[str, float]]:
        """The settings of all arms, each once, in the order of the arms."""
        found = {setting_label(point): point for arm in self.arms for point in self.settings(arm)}
        return list(found.values())

    def arm(self, name: str) -> Arm:
        """The arm called `name`."""
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise TiebreakError(f"study {self.name}: no arm {name!r}; {nearest(name, [arm.name for arm in self.arms])}")

    def goal(self, metric: str | None = None) -> registry.Goal:
        """Whether a higher (`max`) or a lower (`min`) metric is better."""
        return self.entry.metrics[metric or self.metric].goal

    @property
    def entry(self) -> registry.TaskEntry:
        """What is known of the study's task: the registry's entry, or that of the user's own task or program."""
        if self.task == OWN_TASK:
            return own_task_entry(self.metrics)
        return registry.TASKS[self.task] if self.program is None else self.program.entry(self.metric)

    @property
    def most_seeds(self) -> int:
        """How many seeds are planned at most."""
        return self.seeds if self.until_decided is None else max(self.seeds, self.until_decided.max_seeds)

    def optimiser_of(self, arm: Arm) -> Optimiser:
        """The optimiser that the arm is trained with."""
        return arm.optimiser or self.optimiser

    def augment_of(self, arm: Arm) -> Augment | None:
        """How the arm's training images are changed; None: not at all."""
        found = self.augment if arm.augment is None else arm.augment
        return found if found.changes() else None

    def init_of(self, arm: Arm) -> Init | None:
        """How the arm's weights are initialised; None: as its design does it."""
        return arm.init or self.init

    def precision_of(self, arm: Arm) -> RunPrecision | None:
        """What the arm's runs compute in; None: float32."""
        found = arm.precision or self.precision
        return None if found == "float32" else found

    def epochs(self, arm: Arm) -> int:
        """The number of epochs that the arm is trained for."""
        epochs = arm.epochs_times * self.budget.epochs
        return epochs * self.batch(arm) // self.budget.batch if self.budget.equal == "steps" else epochs

    def batch(self, arm: Arm) -> int:
        """The batch size that the arm is trained with."""
        return arm.batch or self.budget.batch

    def changed(
        self,
        *,
        data: str | None = None,
        seeds: int | None = None,
        epochs: int | None = None,
        grid: Mapping[str, tuple[float, ...]] | None = None,
        until_decided: UntilDecided | None = None,
    ) -> Study:
        """The same study with another data set, number of seeds or of epochs, or other values of the grid, checked.

        A number of seeds replaces `until_decided`, unless both are given: then that many are there so far.
        A protocol that does not apply to the new data is replaced by `audited`.
        """
        budget = {**self.budget.model_dump(), **({"epochs": epochs} if epochs is not None else {})}
        if self.program is not None and (data is not None or epochs is not None):
            raise TiebreakError(f"{'--data' if data is not None else '--epochs'}: not for a program, which has its own")
        made_for = self.entry.protocols[self.protocol].data
        if data is not None and registry.is_path(data) and Path(data).expanduser().exists():
            data = str(Path(data).expanduser().resolve())  # the study may be read again from another folder
        protocol = "audited" if data is not None and made_for and data not in made_for else self.protocol
        changes: dict[str, Any] = {"data": data, "seeds": seeds, "budget": budget, "protocol": protocol}
        changes |= {"grid": {**self.grid, **grid}} if grid else {}
        changes = {key: value for key, value in changes.items() if value is not None}
        if seeds is not None or until_decided is not None:
            changes["until_decided"] = until_decided.model_dump() if until_decided else None
        return self._replace(changes)

    def growing(self, *, until_decided: bool, max_seeds: int | None, comparisons: str | None = None) -> Study:
        """The same study with seeds until it is decided, if asked for; `max_seeds` alone changes a study that has them.

        `comparisons`: which must be decided, `primary` or `all`.
        """
        if not isinstance(until_decided, bool):
            raise TiebreakError(f"until_decided should be True or False, not {until_decided!r}")
        if not until_decided and max_seeds is None:
            return self
        if not until_decided and self.until_decided is None:
            raise TiebreakError("max_seeds: only with until_decided; a fixed number is given as seeds")
        rule = (self.until_decided or UntilDecided()).model_dump()
        rule |= {"max_seeds": max_seeds} if max_seeds is not None else {}
        rule |= {"comparisons": comparisons} if comparisons is not None else {}
        return self._replace({"until_decided": rule})

    def quickened(self) -> Study:
        """The quick version, as described by the study's `[quick]` table."""
        quick: dict[str, Any] = self.quick.model_dump(exclude_none=True)
        budget = self.budget.model_dump() | {key: quick.pop(key) for key in ("epochs", "batch") if key in quick}
        out = set(quick.pop("without"))
        build, build_of, grid_of = quick.pop("build"), quick.pop("build_of"), quick.pop("grid_of")
        kept = {item.name for item in self.comparisons if not out & set(item.arms())}
        whole = self.model_dump(mode="json", exclude_none=True)
        grid = quick.get("grid", self.grid)
        parts = {
            "arms": [
                _smaller(item, {**build, **build_of.get(item["name"], {})}, grid_of.get(item["name"]))
                for item in whole["arms"]
                if item["name"] not in out
            ],
            "options": {**whole["options"], **quick.pop("options")},
            "fixed": {**whole["fixed"], **quick.pop("fixed")},
            "comparisons": [item for item in whole["comparisons"] if item["name"] in kept],
            "claims": [
                {**item, "also": [name for name in item["also"] if name in kept]}
                for item in whole["claims"]
                if item["comparison"] in kept
            ],
            "reported": [
                item
                for item in whole["reported"]
                if item["arm"] not in out and all(item["setting"].get(key) in values for key, values in grid.items())
            ],
            "quick": {**whole["quick"], "without": []},
            **({"until_decided": None} if "seeds" in quick else {}),
        }
        return self._replace({**quick, "budget": budget, **parts})

    def _replace(self, changes: Mapping[str, Any]) -> Study:
        whole = {**self.model_dump(mode="json", exclude_none=True), **changes}
        return parsing.validate(Study, whole, f"study {self.name}")


def _smaller(arm: dict[str, Any], build: Mapping[str, Scalar], grid: Grid | None) -> dict[str, Any]:
    """The arm with those design options of the quick version that its design has; a user's design gets none."""
    design = registry.DESIGNS.get(arm["design"])
    known = {name: value for name, value in build.items() if design is not None and name in design.options}
    return {**arm, "build": {**arm["build"], **known}, **({"grid": grid} if grid is not None else {})}
