"""A study: the question, the arms, the comparisons, what is tuned and what it may cost. Frozen, strict, no torch.

What is compared is an *arm*; what is tuned is a *setting* of the grid; a *seed* is a replicate.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tiebreak.errors import TiebreakError, nearest
from tiebreak.study import parsing, registry, rules
from tiebreak.study.base import Grid, Margin, Name, Options, Setting, Strict, setting_label
from tiebreak.study.comparison_kinds import Agreement, BestSetting, Comparison, Interaction, Order, Pair, with_name
from tiebreak.study.optimiser import Optimiser, Schedule
from tiebreak.study.published import Claim, Reported
from tiebreak.study.registry import Scalar

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
    "setting_label",
]


Epochs = Annotated[int, Field(ge=1, le=1_000_000)]
Batch = Annotated[int, Field(ge=1, le=1_000_000)]


class Arm(Strict):
    """What is compared: a design, plus what the study changes for it."""

    name: Name
    design: str
    build: Options = Field(default_factory=dict)  # options of the design, such as its width
    options: Options = Field(default_factory=dict)  # options of the task, such as shuffled pixels
    evaluation: Options = Field(default_factory=dict)  # arms that differ only in this share their trained runs
    fixed: dict[str, float] = Field(default_factory=dict)  # hyper-parameters that are not tuned
    protocol: str | None = None  # replaces the study's
    optimiser: Optimiser | None = None  # replaces the study's
    epochs_times: Annotated[int, Field(ge=1, le=1_000)] = 1  # multiplies the epochs of the budget


class Budget(Strict):
    """Epochs and batch size of every run."""

    epochs: Epochs
    batch: Batch


class Quick(Strict):
    """What `--quick` changes: a version for embedded data and minutes on two cores."""

    data: str | None = None
    protocol: str | None = None
    seeds: Annotated[int, Field(ge=1)] | None = None
    epochs: Epochs | None = None
    batch: Batch | None = None
    grid: Grid | None = None
    without: tuple[str, ...] = Field(default=(), strict=False)  # arms to leave out, with their comparisons
    build: Options = Field(default_factory=dict)  # design options for every arm whose design has them
    build_of: dict[str, Options] = Field(default_factory=dict)  # design options for one arm, by its name
    options: Options = Field(default_factory=dict)  # options of the task
    fixed: dict[str, float] = Field(default_factory=dict)
    optimiser: Optimiser | None = None


class About(Strict):
    """The header of a shipped study."""

    command: str = ""
    time: str = ""
    expected: str = ""


class Study(Strict):
    """One question and everything needed to answer it."""

    name: Name
    question: str
    task: str
    data: str
    protocol: str = "audited"
    metric: str
    margin: Margin
    seeds: Annotated[int, Field(ge=1, le=10_000)]
    about: About = About()
    designs_from: str | None = None  # a Python file with a dict DESIGNS; it is run when a network is built
    options: Options = Field(default_factory=dict)
    budget: Budget
    optimiser: Optimiser = Optimiser()
    fixed: dict[str, float] = Field(default_factory=dict)
    grid: Grid = Field(default_factory=dict)
    arms: tuple[Arm, ...] = Field(min_length=1, strict=False)
    comparisons: tuple[Comparison, ...] = Field(min_length=1, strict=False)
    claims: tuple[Claim, ...] = Field(default=(), strict=False)
    reported: tuple[Reported, ...] = Field(default=(), strict=False)
    quick: Quick = Quick()

    @classmethod
    def load(cls, name: str) -> Study:
        """Load a built-in study by name, or a study file by path."""
        text, where = parsing.find(name)
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
        filled = dict(data)
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

    def settings(self) -> list[dict[str, float]]:
        """Every point of the grid, in the order of the file."""
        return [dict(zip(self.grid, point, strict=True)) for point in itertools.product(*self.grid.values())]

    def arm(self, name: str) -> Arm:
        """The arm called `name`."""
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise TiebreakError(f"study {self.name}: no arm {name!r}; {nearest(name, [arm.name for arm in self.arms])}")

    def goal(self, metric: str | None = None) -> registry.Goal:
        """Whether a higher (`max`) or a lower (`min`) metric is better."""
        return registry.TASKS[self.task].metrics[metric or self.metric].goal

    def optimiser_of(self, arm: Arm) -> Optimiser:
        """The optimiser that the arm is trained with."""
        return arm.optimiser or self.optimiser

    def epochs(self, arm: Arm) -> int:
        """The number of epochs that the arm is trained for."""
        return arm.epochs_times * self.budget.epochs

    def changed(self, *, data: str | None = None, seeds: int | None = None, epochs: int | None = None) -> Study:
        """The same study with another data set, number of seeds or number of epochs, checked again.

        A protocol that does not apply to the new data is replaced by `audited`.
        """
        budget = {**self.budget.model_dump(), **({"epochs": epochs} if epochs is not None else {})}
        made_for = registry.TASKS[self.task].protocols[self.protocol].data
        if data is not None and registry.is_path(data) and Path(data).expanduser().exists():
            data = str(Path(data).expanduser().resolve())  # the study may be read again from another folder
        protocol = "audited" if data is not None and made_for and data not in made_for else self.protocol
        changes = {"data": data, "seeds": seeds, "budget": budget, "protocol": protocol}
        return self._replace({key: value for key, value in changes.items() if value is not None})

    def quickened(self) -> Study:
        """The quick version, as described by the study's `[quick]` table."""
        quick: dict[str, Any] = self.quick.model_dump(exclude_none=True)
        budget = self.budget.model_dump() | {key: quick.pop(key) for key in ("epochs", "batch") if key in quick}
        out = set(quick.pop("without"))
        build, build_of = quick.pop("build"), quick.pop("build_of")
        kept = {item.name for item in self.comparisons if not out & set(item.arms())}
        whole = self.model_dump(mode="json", exclude_none=True)
        parts = {
            "arms": [
                _smaller(item, {**build, **build_of.get(item["name"], {})})
                for item in whole["arms"]
                if item["name"] not in out
            ],
            "options": {**whole["options"], **quick.pop("options")},
            "fixed": {**whole["fixed"], **quick.pop("fixed")},
            "comparisons": [item for item in whole["comparisons"] if item["name"] in kept],
            "claims": [item for item in whole["claims"] if kept.issuperset({item["comparison"], *item["also"]})],
            "reported": [item for item in whole["reported"] if item["arm"] not in out],
            "quick": {**whole["quick"], "without": []},
        }
        return self._replace({**quick, "budget": budget, **parts})

    def _replace(self, changes: Mapping[str, Any]) -> Study:
        whole = {**self.model_dump(mode="json", exclude_none=True), **changes}
        return parsing.validate(Study, whole, f"study {self.name}")


def _smaller(arm: dict[str, Any], build: Mapping[str, Scalar]) -> dict[str, Any]:
    """The arm with those design options of the quick version that its design has; a user's design gets none."""
    design = registry.DESIGNS.get(arm["design"])
    known = {name: value for name, value in build.items() if design is not None and name in design.options}
    return {**arm, "build": {**arm["build"], **known}}
