"""The kinds of comparison that a study can ask for."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from tiebreak.study.base import Margin, Strict

DEFAULT_NAMES = {  # by kind
    "pair": "{a} vs {b}",
    "interaction": "({a} - {b}) vs ({c} - {d})",
    "setting": "best setting of {arm}",
    "order": "order of metrics of {arm}",
    "agreement": "agreement of metrics of {arm}",
}
KIND = "the kind of comparison"
NAME = "how the report calls it; default: a name made of its arms"
METRIC = "another metric than the study's; it needs a margin of its own"
MARGIN = "another margin than the study's"
PRIMARY = "whether it answers the study's question; the only comparison of a study is primary"
METRICS = "metrics of the task where higher is better, in the order that is expected"
Metrics = Annotated[tuple[str, ...], Field(min_length=2, strict=False)]


class Pair(Strict):
    """Is arm `a` better than arm `b`, each at its own best setting?"""

    kind: Literal["pair"] = Field(default="pair", description=KIND, examples=["pair"])
    name: str = Field(default="", description=NAME, examples=["main question"])
    a: str = Field(description="the first arm", examples=["pool"])
    b: str = Field(description="the arm that `a` is compared with", examples=["strided"])
    metric: str | None = Field(default=None, description=METRIC, examples=["loss"])
    margin: Margin | None = Field(default=None, description=MARGIN, examples=[0.01])
    primary: bool = Field(default=False, description=PRIMARY, examples=[True])

    def arms(self) -> tuple[str, ...]:
        """The arms that are compared."""
        return (self.a, self.b)


class Interaction(Strict):
    """Is the advantage of `a` over `b` larger than the advantage of `c` over `d`? A difference of differences."""

    kind: Literal["interaction"] = Field(description=KIND, examples=["interaction"])
    name: str = Field(default="", description=NAME, examples=["main question"])
    a: str = Field(description="the first arm", examples=["pool"])
    b: str = Field(description="the arm that `a` is compared with", examples=["strided"])
    c: str = Field(description="the first arm of the other difference", examples=["pool-shuffled"])
    d: str = Field(description="the arm that `c` is compared with", examples=["strided-shuffled"])
    metric: str | None = Field(default=None, description=METRIC, examples=["loss"])
    margin: Margin | None = Field(default=None, description=MARGIN, examples=[0.01])
    primary: bool = Field(default=False, description=PRIMARY, examples=[True])

    def arms(self) -> tuple[str, ...]:
        """The arms that are compared."""
        return (self.a, self.b, self.c, self.d)


class BestSetting(Strict):
    """Is `expect` the best setting of the grid for `arm`? One comparison with each other setting."""

    kind: Literal["setting"] = Field(description=KIND, examples=["setting"])
    name: str = Field(default="", description=NAME, examples=["main question"])
    arm: str = Field(description="the arm", examples=["pool"])
    expect: dict[str, float] = Field(description="the setting that should be best", examples=[{"lr": 0.1}])
    metric: str | None = Field(default=None, description=METRIC, examples=["loss"])
    margin: Margin | None = Field(default=None, description=MARGIN, examples=[0.01])
    primary: bool = Field(default=False, description=PRIMARY, examples=[True])

    def arms(self) -> tuple[str, ...]:
        """The arms that are compared."""
        return (self.arm,)


class Order(Strict):
    """Is each of these metrics above the next, on the same runs of `arm`? One comparison per two neighbours."""

    kind: Literal["order"] = Field(description=KIND, examples=["order"])
    name: str = Field(default="", description=NAME, examples=["main question"])
    arm: str = Field(description="the arm", examples=["pool"])
    metrics: Metrics = Field(description=METRICS, examples=[["cosine", "jaccard"]])
    margin: Margin = Field(description="the smallest difference of two metrics that matters", examples=[0.01])
    primary: bool = Field(default=False, description=PRIMARY, examples=[True])
    metric: ClassVar[None] = None  # it has several

    def arms(self) -> tuple[str, ...]:
        """The arms that are compared."""
        return (self.arm,)


class Agreement(Strict):
    """Do these metrics rise and fall together over the epochs of a run? The smallest rank correlation of any two."""

    kind: Literal["agreement"] = Field(description=KIND, examples=["agreement"])
    name: str = Field(default="", description=NAME, examples=["main question"])
    arm: str = Field(description="the arm", examples=["pool"])
    metrics: Metrics = Field(description=METRICS, examples=[["cosine", "jaccard"]])
    margin: Margin = Field(description="the smallest rank correlation that matters", examples=[0.1])
    primary: bool = Field(default=False, description=PRIMARY, examples=[True])
    metric: ClassVar[None] = None  # it has several

    def arms(self) -> tuple[str, ...]:
        """The arms that are compared."""
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
        custom_error_message=f"kind should be one of {', '.join(map(repr, DEFAULT_NAMES))}",
    ),
]


def with_name(item: Any, count: int) -> Any:
    """A comparison of a study file with its default name written out; the only one of `count` is the primary one."""
    if not isinstance(item, dict):
        return item
    default = DEFAULT_NAMES.get(str(item.get("kind", "pair")), "")
    parts = {key: item.get(key, "?") for key in ("a", "b", "c", "d", "arm")}
    primary = {"primary": True} if count == 1 else {}
    return {"name": default.format(**parts), **primary, **item}
