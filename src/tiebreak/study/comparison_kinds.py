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
Metrics = Annotated[tuple[str, ...], Field(min_length=2, strict=False)]


class Pair(Strict):
    """Is arm `a` better than arm `b`, each at its own best setting?"""

    kind: Literal["pair"] = "pair"
    name: str = ""
    a: str
    b: str
    metric: str | None = None  # another than the study's; it needs its own margin
    margin: Margin | None = None
    primary: bool = False

    def arms(self) -> tuple[str, ...]:
        """The arms that are compared."""
        return (self.a, self.b)


class Interaction(Strict):
    """Is the advantage of `a` over `b` larger than the advantage of `c` over `d`? A difference of differences."""

    kind: Literal["interaction"]
    name: str = ""
    a: str
    b: str
    c: str
    d: str
    metric: str | None = None  # another than the study's; it needs its own margin
    margin: Margin | None = None
    primary: bool = False

    def arms(self) -> tuple[str, ...]:
        """The arms that are compared."""
        return (self.a, self.b, self.c, self.d)


class BestSetting(Strict):
    """Is `expect` the best setting of the grid for `arm`? One comparison with each other setting."""

    kind: Literal["setting"]
    name: str = ""
    arm: str
    expect: dict[str, float]
    metric: str | None = None  # another than the study's; it needs its own margin
    margin: Margin | None = None
    primary: bool = False

    def arms(self) -> tuple[str, ...]:
        """The arms that are compared."""
        return (self.arm,)


class Order(Strict):
    """Is each of these metrics above the next, on the same runs of `arm`? One comparison per two neighbours."""

    kind: Literal["order"]
    name: str = ""
    arm: str
    metrics: Metrics
    margin: Margin
    primary: bool = False
    metric: ClassVar[None] = None  # it has several

    def arms(self) -> tuple[str, ...]:
        """The arms that are compared."""
        return (self.arm,)


class Agreement(Strict):
    """Do these metrics rise and fall together over the epochs of a run? The smallest rank correlation of any two."""

    kind: Literal["agreement"]
    name: str = ""
    arm: str
    metrics: Metrics
    margin: Margin  # of a correlation
    primary: bool = False
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
