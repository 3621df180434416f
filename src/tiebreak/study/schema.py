"""A study: the question, the arms, the comparisons, what is tuned and what it may cost. Frozen, strict, no torch.

What is compared is an *arm*; what is tuned is a *setting* of the grid; a *seed* is a replicate.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from tiebreak.errors import TiebreakError, nearest
from tiebreak.study import parsing, registry, rules
from tiebreak.study.registry import Scalar
from tiebreak.study.rules import setting_label

Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$", max_length=60)]
Setting = Mapping[str, float]
Margin = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _plain(value: Any) -> Any:
    if not isinstance(value, Scalar):
        raise ValueError("should be a number, a text, true or false")
    return value


Options = dict[str, Annotated[Scalar, BeforeValidator(_plain)]]

__all__ = [
    "Agreement",
    "Arm",
    "BestSetting",
    "Claim",
    "Comparison",
    "Interaction",
    "Order",
    "Pair",
    "Reported",
    "Setting",
    "Study",
    "setting_label",
]


class Strict(BaseModel):
    """A frozen model without coercion, whose unknown keys are answered with the nearest valid one."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        for key in data if isinstance(data, dict) else ():
            if key not in cls.model_fields:
                raise ValueError(f"unknown key {key!r}; {nearest(str(key), cls.model_fields)}")
        return data


class Schedule(Strict):
    """The learning rate's course: a factor per step. Warm-up and decay rise from and fall to `floor`."""

    kind: Literal["constant", "linear", "cosine"] = "constant"
    warmup_epochs: Annotated[int, Field(ge=0)] = 0
    decay_epochs: Annotated[int, Field(ge=0)] = 0  # 0: what the budget leaves after the warm-up
    floor: Annotated[float, Field(ge=0, le=1)] = 0.01

    def depends_on_budget(self) -> bool:
        """Whether a longer budget would have changed the epochs already trained."""
        return self.kind != "constant" and self.decay_epochs == 0


class Optimiser(Strict):
    """The update rule; its numbers are hyper-parameters."""

    kind: Literal["sgd", "sgd-summed", "adam", "adamw"] = "sgd"
    schedule: Schedule = Schedule()


class Arm(Strict):
    """What is compared: a design, plus what the study changes for it."""

    name: Name
    design: str
    build: Options = {}  # options of the design, such as its width
    options: Options = {}  # options of the task, such as shuffled pixels
    evaluation: Options = {}  # how the trained run is evaluated; arms that differ only here share their runs
    fixed: dict[str, float] = {}  # hyper-parameters that are not tuned
    protocol: str | None = None  # instead of the study's
    optimiser: Optimiser | None = None  # instead of the study's
    epochs_times: Annotated[int, Field(ge=1)] = 1  # trained for this many times the epochs of the budget


class Pair(Strict):
    """Is arm `a` better than arm `b`, each at its own best setting?"""

    kind: Literal["pair"] = "pair"
    name: str = ""
    a: str
    b: str
    metric: str | None = None  # instead of the study's, with a margin of its own
    margin: Margin | None = None
    primary: bool = False

    def arms(self) -> tuple[str, ...]:
        """The arms that the comparison needs."""
        return (self.a, self.b)


class Interaction(Strict):
    """Is the advantage of `a` over `b` larger than the advantage of `c` over `d`? A difference of differences."""

    kind: Literal["interaction"]
    name: str = ""
    a: str
    b: str
    c: str
    d: str
    metric: str | None = None  # instead of the study's, with a margin of its own
    margin: Margin | None = None
    primary: bool = False

    def arms(self) -> tuple[str, ...]:
        """The arms that the comparison needs."""
        return (self.a, self.b, self.c, self.d)


class BestSetting(Strict):
    """Is `expect` the best setting of the grid for `arm`? One comparison with each other setting."""

    kind: Literal["setting"]
    name: str = ""
    arm: str
    expect: dict[str, float]
    metric: str | None = None  # instead of the study's, with a margin of its own
    margin: Margin | None = None
    primary: bool = False

    def arms(self) -> tuple[str, ...]:
        """The arms that the comparison needs."""
        return (self.arm,)


class Order(Strict):
    """Is each of these metrics above the next, on the same runs of `arm`? One comparison for each two neighbours."""

    kind: Literal["order"]
    name: str = ""
    arm: str
    metrics: Annotated[tuple[str, ...], Field(min_length=2, strict=False)]
    margin: Margin
    primary: bool = False
    metric: ClassVar[None] = None  # it has several

    def arms(self) -> tuple[str, ...]:
        """The arms that the comparison needs."""
        return (self.arm,)


class Agreement(Strict):
    """Do these metrics rise and fall together over the epochs of a run? The least rank correlation of two of them."""

    kind: Literal["agreement"]
    name: str = ""
    arm: str
    metrics: Annotated[tuple[str, ...], Field(min_length=2, strict=False)]
    margin: Margin  # of a correlation
    primary: bool = False
    metric: ClassVar[None] = None  # it has several

    def arms(self) -> tuple[str, ...]:
        """The arms that the comparison needs."""
        return (self.arm,)


def _kind(value: Any) -> str:
    return str(value.get("kind", "pair") if isinstance(value, dict) else getattr(value, "kind", "pair"))


Comparison = Annotated[
    Annotated[Pair, Tag("pair")]
    | Annotated[Interaction, Tag("interaction")]
    | Annotated[BestSetting, Tag("setting")]
    | Annotated[Order, Tag("order")]
    | Annotated[Agreement, Tag("agreement")],
    Discriminator(
        _kind,
        custom_error_type="kind",
        custom_error_message="kind should be 'pair', 'interaction', 'setting', 'order' or 'agreement'",
    ),
]


class Budget(Strict):
    """What every run may spend."""

    epochs: Annotated[int, Field(ge=1)]
    batch: Annotated[int, Field(ge=1)]


class Claim(Strict):
    """A published sentence, decided by a comparison when the study runs under the claim's own protocol."""

    id: Name
    text: str
    source: tuple[str, ...] = Field(default=(), strict=False)
    comparison: str
    also: tuple[str, ...] = Field(default=(), strict=False)  # further comparisons that must come out the same way
    expect: Literal["a", "b", "same"] = "a"
    data: str | None = None
    protocol: str | None = None
    epochs: int | None = None


class Reported(Strict):
    """A number published elsewhere for one run, shown against our distribution of single runs."""

    source: str
    what: str
    arm: str
    setting: dict[str, float]
    metric: str
    value: Annotated[float, Field(allow_inf_nan=False)]
    data: str | None = None
    protocol: str | None = None
    epochs: int | None = None


class Quick(Strict):
    """What the small version changes: minutes on two cores, embedded data."""

    data: str | None = None
    protocol: str | None = None
    seeds: Annotated[int, Field(ge=1)] | None = None
    epochs: Annotated[int, Field(ge=1)] | None = None
    batch: Annotated[int, Field(ge=1)] | None = None
    grid: dict[str, Annotated[tuple[float, ...], Field(min_length=1, strict=False)]] | None = None
    without: tuple[str, ...] = Field(default=(), strict=False)  # arms that are left out, with what rests on them
    build: Options = {}  # options of every design that has them, such as a smaller width
    build_of: dict[str, Options] = {}  # the same of one arm, by its name
    options: Options = {}  # options of the task
    fixed: dict[str, float] = {}
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
    designs_from: str | None = None  # a Python file that exports DESIGNS: code, run when they are built
    options: Options = {}
    budget: Budget
    optimiser: Optimiser = Optimiser()
    fixed: dict[str, float] = {}
    grid: dict[str, Annotated[tuple[float, ...], Field(min_length=1, strict=False)]] = {}
    arms: tuple[Arm, ...] = Field(min_length=1, strict=False)
    comparisons: tuple[Comparison, ...] = Field(min_length=1, strict=False)
    claims: tuple[Claim, ...] = Field(default=(), strict=False)
    reported: tuple[Reported, ...] = Field(default=(), strict=False)
    quick: Quick = Quick()

    @classmethod
    def load(cls, name: str) -> Study:
        """A built-in study by name, or a study file by path."""
        text, where = parsing.find(name)
        content = parsing.load_toml(text, where)
        return parsing.validate(cls, parsing.placed(content, Path(name).parent), where)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any) -> Any:
        """Write out the defaults that depend on other keys, so that overriding the data later cannot move them."""
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
            filled["comparisons"] = [_named(item, len(data["comparisons"])) for item in data["comparisons"]]
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
        """Whether more (`max`) or less (`min`) of the metric is better."""
        return registry.TASKS[self.task].metrics[metric or self.metric]

    def rule(self, arm: Arm) -> Optimiser:
        """The update rule that the arm is trained with."""
        return arm.optimiser or self.optimiser

    def epochs(self, arm: Arm) -> int:
        """The epochs that the arm is trained for."""
        return arm.epochs_times * self.budget.epochs

    def changed(self, *, data: str | None = None, seeds: int | None = None, epochs: int | None = None) -> Study:
        """The same study with another data set, number of seeds or number of epochs, checked again.

        A protocol that was made for other data gives way to `audited`.
        """
        budget = {**self.budget.model_dump(), **({"epochs": epochs} if epochs is not None else {})}
        made_for = registry.TASKS[self.task].protocols[self.protocol].data
        if data is not None and registry.is_path(data) and Path(data).expanduser().exists():
            data = str(Path(data).expanduser().resolve())  # the study may be read again from another folder
        protocol = "audited" if data is not None and made_for and data not in made_for else self.protocol
        changes = {"data": data, "seeds": seeds, "budget": budget, "protocol": protocol}
        return self._replace({key: value for key, value in changes.items() if value is not None})

    def quickened(self) -> Study:
        """The small version, as the study's `[quick]` table says."""
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
    """An arm with the options of the quick version that its design has; a user's design has none of these."""
    design = registry.DESIGNS.get(arm["design"])
    known = {name: value for name, value in build.items() if design is not None and name in design.options}
    return {**arm, "build": {**arm["build"], **known}}


def _named(item: Any, count: int) -> Any:
    """A comparison with its name written out; the only comparison of a study is the primary one."""
    if not isinstance(item, dict):
        return item
    default = {
        "pair": "{a} vs {b}",
        "interaction": "({a} - {b}) vs ({c} - {d})",
        "setting": "best setting of {arm}",
        "order": "order of metrics of {arm}",
        "agreement": "agreement of metrics of {arm}",
    }.get(str(item.get("kind", "pair")), "")
    parts = {key: item.get(key, "?") for key in ("a", "b", "c", "d", "arm")}
    primary = {"primary": True} if count == 1 else {}
    return {"name": default.format(**parts), **primary, **item}
