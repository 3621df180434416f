"""The types of the registry: what is known about a design, a task, a data set, an option and a hyper-parameter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Scalar = bool | int | float | str
Goal = Literal["max", "min"]
Functional = Literal["mean", "ratio", "exp-ratio"]


@dataclass(frozen=True, kw_only=True)
class Option:
    """One typed option of a task, an evaluation or a design. `line` completes "name=value (...)" in a report."""

    default: Scalar
    line: str
    choices: tuple[Scalar, ...] = ()
    low: float | None = None
    high: float | None = None
    of_data: bool = False  # controls how the data is loaded: set for the whole study, not for one arm


@dataclass(frozen=True, kw_only=True)
class DesignEntry:
    """A network of the catalog."""

    family: str
    line: str
    options: Mapping[str, Option] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A named set of task options, such as `as-reported`."""

    options: Mapping[str, Scalar] = field(default_factory=dict)
    data: tuple[str, ...] = ()  # the data sets that the protocol applies to; empty: all of the family


@dataclass(frozen=True, kw_only=True)
class MetricEntry:
    """A metric: which scores are better, and how the score of a split follows from its examples.

    v_j is the outcome `of` of example j, w_j its outcome `weight`. mean: Σ v_j / J; ratio: Σ w_j v_j / Σ w_j;
    exp-ratio: exp(Σ w_j v_j / Σ w_j).
    """

    goal: Goal
    functional: Functional = "mean"
    of: str = ""  # empty: the outcome with the name of the metric
    weight: str = ""  # of a ratio, such as weight_tokens
    label: str = ""  # for readers; empty: the name of the metric
    detail: bool = False  # in the report's table of metrics, but no curve of its own unless the study is about it


@dataclass(frozen=True, kw_only=True)
class TaskEntry:
    """A task: its metrics, the options that a study may change, and its protocols."""

    family: str
    line: str
    metrics: Mapping[str, MetricEntry]
    options: Mapping[str, Option]
    evaluation: Mapping[str, Option]
    protocols: Mapping[str, Protocol]
    use: Mapping[str, Option] = field(default_factory=dict)  # options of `tiebreak use`
    ordered: bool = False  # examples are consecutive windows of one sequence: the batch size is 1
    whole: bool = False  # every training step takes all training data: the batch size is 1
    unit: str = ""  # what a reader counts the data in, where an example of training is something else


@dataclass(frozen=True, kw_only=True)
class DataEntry:
    """A data set, and the family of tasks that can use it."""

    family: str
    line: str
    embedded: bool = False  # comes with the installation: nothing to download


@dataclass(frozen=True, kw_only=True)
class Hyper:
    """A hyper-parameter: one number per run. `default=None`: the design's own value."""

    default: float | None
    low: float
    high: float
    line: str
    optional: bool = False  # part of a run only where the study sets it to something else than its default
