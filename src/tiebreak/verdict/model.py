"""The answer to a study, with the stable keys of `verdict.json`. Frozen, no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import Difference
from tiebreak.study import parsing
from tiebreak.study.schema import Strict
from tiebreak.verdict.compared import Compared

VERDICT_FILE = "verdict.json"
Outcome = Literal["a", "b", "same", "undecided"]
ClaimOutcome = Literal["holds", "fails", "undecided", "hint", "not run here"]


class Metric(Strict):
    """What is compared, and on which split."""

    name: str
    goal: Literal["max", "min"]
    split: str = "test"


class Edge(Strict):
    """A hyper-parameter whose chosen value is the smallest or the largest of the grid: it may be under-tuned."""

    name: str
    value: float
    end: Literal["smallest", "largest"]
    wider: tuple[float, ...] = Field(strict=False)  # the grid of this hyper-parameter with one value more at that end


class ArmResult(Strict):
    """One arm at the setting that validation chose. Intervals are 95 % t intervals over seeds."""

    name: str
    design: str
    parameters: int | None  # None: unknown
    flops: int | None
    setting: dict[str, float]
    seeds: int  # runs that finished at this setting
    failed: int  # runs that diverged or failed at this setting
    missing: int  # runs not trained yet
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None
    train_seconds: float | None  # mean per run; a share of the time where runs were trained together
    step_ms: float | None = None  # a training step of one run, timed alone; None: not timed
    solo_seconds: float | None = None  # training of one run alone, without evaluation: its steps, timed in turns
    memory_bytes: int | None = None  # of a run and one training step; None: not measured
    at_edge: tuple[Edge, ...] = Field(default=(), strict=False)  # empty: best inside the grid, or nothing tuned
    differences: tuple[Difference, ...] | None = Field(default=None, strict=False)  # from the first arm; None: unknown


class Side(Strict):
    """One side of a comparison: an arm at a setting, scored by a metric.

    The score of an agreement is the least rank correlation between two of `metrics`.
    """

    arm: str
    setting: dict[str, float]
    metric: str
    metrics: tuple[str, ...] = Field(default=(), strict=False)  # of an agreement; else empty


class Look(Strict):
    """A comparison as it stood at one look: its interval, at the two-sided level that this look has of the 5 %.

    A difference is found where the interval excludes 0.
    """

    seeds: int
    difference: float | None
    low: float | None
    high: float | None
    level: float


class Stopping(Strict):
    """Where a study stands that takes seeds until it is decided."""

    max_seeds: int
    comparisons: Literal["primary", "all"]  # which must be decided
    looks: tuple[int, ...] = Field(strict=False)  # seeds at each look so far
    next: int | None  # seeds at the next look; None: it has stopped
    reason: Literal["decided", "most seeds", "futile", "goes on", "not final"]
    chance: float | None  # to be decided by max_seeds, where it is not


class ComparisonResult(Strict):
    """One comparison. `difference` is a minus b in the metric's own unit, whatever the goal.

    `sides` says what was subtracted from what: the first minus the second; for an interaction (first - second) minus
    (third - fourth); an agreement has one side, compared with 0.
    """

    name: str
    group: str = ""  # the study's comparison that it belongs to: "which setting is best" makes several
    kind: Literal["pair", "interaction", "setting", "order", "agreement"]
    primary: bool
    a: str  # the first side as a label for readers; programs read `sides`
    b: str
    sides: tuple[Side, ...] = Field(strict=False)
    metric: str
    margin: float
    difference: float | None
    low: float | None  # simultaneous 95 % interval over seeds, matching Holm, right under all looks
    high: float | None
    p: float | None
    p_adjusted: float | None
    p_sign_flip: float | None  # of paired seeds
    p_a_better: float | None
    verdict: Outcome
    seeds: int
    seeds_needed: int | None  # how many more; None when decided, when no number would do, when a side has only failures
    examples_low: float | None  # 95 % interval over test examples, seeds held fixed
    examples_high: float | None
    crossed_low: float | None = None  # over seeds and test examples together
    crossed_high: float | None = None
    path: tuple[Look, ...] = Field(default=(), strict=False)  # looks so far; at the end the present one, if final
    sentence: str  # the same in words
    flags: tuple[str, ...] = Field(default=(), strict=False)  # what is odd about it; `warnings` has each once
    skewness: float | None = None  # of lopsided differences, without its sign
    test: Literal["paired-t", "welch", "wilcoxon"] = "paired-t"  # paired seeds, unpaired seeds, data sets
    runs: tuple[int, int] | None = Field(default=None, strict=False)  # of a and b, where they are not paired
    p_permutation: float | None = None  # of unpaired seeds
    time_ratio: float | None = None  # training time alone, a over b, steps timed in turns; only of a pair of arms
    time_low: float | None = None  # 95 % interval of the median over rounds
    time_high: float | None = None

    @property
    def on_this_test_set(self) -> bool:
        """Whether a difference was found that another test set may not show: over seeds and examples it reaches 0.

        An interval that Holm's step cut at 0 always does so; then that over examples alone tells.
        """
        if self.verdict not in ("a", "b") or self.crossed_low is None or self.crossed_high is None:
            return False
        if 0 in (self.low, self.high) and self.examples_low is not None and self.examples_high is not None:
            return self.examples_low <= 0 <= self.examples_high
        return self.crossed_low <= 0 <= self.crossed_high

    @property
    def side_names(self) -> tuple[str, str]:
        """What is subtracted from what, for readers: a difference of two arms is written with a true minus sign."""
        if self.kind != "interaction":
            return self.a, self.b
        a, b, c, d = (side.arm for side in self.sides)
        return f"{a} − {b}", f"{c} − {d}"


MEASURED = ("difference", "low", "high", "p", "p_adjusted", "p_sign_flip", "p_permutation", "p_a_better", "verdict",
            "seeds", "seeds_needed", "test", "runs", "flags", "skewness")  # fmt: skip


def measured(result: Compared) -> dict[str, Any]:
    """What a `ComparisonResult` takes over from the test, whatever was compared."""
    return {name: getattr(result, name) for name in MEASURED}


class ReportedResult(Strict):
    """A published figure against our distribution of single runs (95 % prediction interval over seeds).

    `percentile` is the chance in per cent that a fresh run scores below the figure; `below` counts the runs that did.
    """

    source: str
    what: str
    value: float
    mean: float | None
    low: float | None
    high: float | None
    inside: bool | None
    seeds: int
    percentile: float | None = None  # also None where an older version wrote the verdict
    below: int | None = None


class ClaimResult(Strict):
    """A claim and its outcome; `leans` says which way a hint points."""

    id: str
    text: str
    source: tuple[str, ...] = Field(strict=False)  # a list in JSON
    verdict: ClaimOutcome
    leans: Literal["holds", "fails", "undecided"] | None
    why: str


class RankedArm(Strict):
    """An arm in the order of its mean. Arms that share a letter were not found different (Holm over all pairs)."""

    name: str
    mean: float
    letters: str
    beats: dict[str, float]  # the chance that a fresh run beats one of the other arm


class Verdict(Strict):
    """The answer: what `verdict.json` holds."""

    study: str
    question: str
    answer: str
    data: str
    protocol: str
    metric: Metric
    margin: float
    seeds: int  # planned for each arm and setting
    planned: int  # runs
    finished: int
    ranking: tuple[RankedArm, ...] = ()  # best first, of three arms and more
    stopping: Stopping | None = None  # only of a study with `until_decided`
    designs: tuple[ArmResult, ...]
    comparisons: tuple[ComparisonResult, ...]
    reported: tuple[ReportedResult, ...]
    claims: tuple[ClaimResult, ...]
    warnings: tuple[str, ...]
    cost: str = ""  # of the primary comparison's arms, in words

    model_config = ConfigDict(strict=False)

    @property
    def primary(self) -> ComparisonResult:
        """The comparison that answers the question."""
        return next(item for item in self.comparisons if item.primary)

    def is_of_earlier_version(self) -> bool:
        """Whether the file that it was read from lacks a key: a version of Tiebreak without that key wrote it."""
        parts = (self, *self.comparisons, *self.designs)
        return any(not part.model_fields_set >= type(part).model_fields.keys() for part in parts)

    def to_json(self) -> str:
        """The text of `verdict.json`; numbers that do not exist are null."""
        return self.model_dump_json(indent=2) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Verdict:
        """The stored verdict of a results folder."""
        path = files.inside(folder, VERDICT_FILE)
        if not path.is_file():
            raise TiebreakError(f"{folder}: no {VERDICT_FILE} yet; finish the study with `tiebreak run`")
        try:
            return cls.model_validate_json(files.read_text(path))
        except ValidationError as error:
            raise TiebreakError(f"{path}: {parsing.explain(error)}; `tiebreak report` rewrites it") from None
