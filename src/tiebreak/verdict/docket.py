"""The docket: what kept results say of each published claim, with where every figure comes from. No torch.

`docket.json` in this package is made by `python benchmarks/docket.py` from the verdicts in benchmarks/results. An entry
holds the outcome of a claim by one verdict, the figures that decide it and the sha256 of the file they came from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from tiebreak import files
from tiebreak.errors import TiebreakError
from tiebreak.study import parsing
from tiebreak.study.schema import Claim, Pair, Strict, Study
from tiebreak.text import listed, number_of
from tiebreak.verdict.model import VERDICT_FILE
from tiebreak.verdict.percentile import from_interval

DOCKET_FILE = Path(__file__).parent / "docket.json"
MINUS = "\N{MINUS SIGN}"
TERMS = ("task", "metric", "margin", "designs_from", "options", "optimiser", "augment", "init", "precision", "fixed")
JOINT = "; "  # between limits
ON_THIS_TEST_SET = "on this test set: over other test examples too, the interval would hold 0"
STAND_IN = " stands in for "  # in `limits`: other data than the claim's
Decided = Literal["holds", "fails", "undecided"]


class Figure(Strict):
    """A number that decides a claim, with its 95 % interval; `none` is the value at which there is no effect."""

    model_config = ConfigDict(allow_inf_nan=False)

    what: str
    value: float | None
    low: float | None
    high: float | None
    margin: float | None  # a difference within it does not matter; None: no margin
    none: float = 0.0
    verdict: str  # of the comparison: a, b, same or undecided
    expect: str  # what the claim predicts


class PublishedFigure(Strict):
    """A published number among single runs of ours: `percentile` is the chance that a fresh run scores below it."""

    model_config = ConfigDict(allow_inf_nan=False)

    source: str
    what: str
    value: float
    mean: float | None
    low: float | None
    high: float | None
    n: int
    percentile: float | None


class DocketEntry(Strict):
    """One claim by one kept result. `limits` says what keeps it from deciding the claim: then it is a hint."""

    claim: str
    outcome: Decided  # of these runs; of a hint: which way it points
    hint: bool
    limits: str  # empty: the claim's own data, protocol and budget
    figures: tuple[Figure, ...] = Field(strict=False, min_length=1)
    n: int = Field(ge=0)  # paired seeds; rounds of a benchmark
    unit: str  # of n
    data: str
    protocol: str
    epochs: int | None
    device: str
    date: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    command: str
    file: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    reported: tuple[PublishedFigure, ...] = Field(default=(), strict=False)
    quality: bool = False  # an identity decides the claim; this says what it means for quality
    note: str = ""  # what a reader of the figures should know besides

    @property
    def closeness(self) -> tuple[bool, bool, bool, int]:
        """Smaller is closer to the claim: its own protocol; scores; its own data; few limits."""
        return self.hint, self.timed, STAND_IN in self.limits, self.limits.count(JOINT)

    @property
    def rank(self) -> tuple[tuple[bool, bool, bool, int], int]:
        """Better evidence sorts first: closer; more seeds. Never by the outcome: it is nothing to choose by."""
        return self.closeness, -self.n

    @property
    def own(self) -> bool:
        """Whether it is a result of the user: a kept one has a name of its own."""
        return Path(self.file).name == VERDICT_FILE

    @property
    def timed(self) -> bool:
        """Whether it is a time, not a score."""
        return self.unit.startswith("round")


class Origin(Strict):
    """Where a kept verdict comes from: what the verdict itself does not say."""

    file: str
    study: str  # the built-in study whose claims it speaks of
    date: str
    device: str
    command: str
    epochs: int
    limits: dict[str, str] = Field(default_factory=dict)  # claim: why these runs do not decide it
    looks: tuple[int, ...] = Field(default=(), strict=False)  # earlier ones, in seeds, that the verdict does not count
    notes: dict[str, str] = Field(default_factory=dict)  # claim: what a reader of its figures should know besides
    quality: str | None = None  # a claim that an identity decides: the primary comparison says what it means


class Docket(Strict):
    """The file: a version and the entries."""

    version: Literal[1] = 1
    entries: tuple[DocketEntry, ...] = Field(strict=False)

    def to_json(self) -> str:
        """The text of docket.json."""
        return self.model_dump_json(indent=1) + "\n"


def read_docket(path: Path = DOCKET_FILE) -> list[DocketEntry]:
    """The kept entries; one line where the file is damaged."""
    try:
        return list(Docket.model_validate_json(files.read_text(path)).entries)
    except ValidationError as error:
        raise TiebreakError(
            f"{path}: damaged docket: {parsing.explain(error)}; install tiebreak again, or make it with "
            "`python benchmarks/docket.py`"
        ) from None


def read_kept(path: Path) -> dict[str, Any]:
    """A kept verdict.json of any version; one line where it is damaged."""
    try:
        content = json.loads(files.read_text(path))
        if not isinstance(content, dict) or not {"study", "data", "protocol", "comparisons", "reported"} <= set(
            content
        ):
            raise ValueError("not a verdict")
    except ValueError as error:
        raise TiebreakError(f"{path}: damaged verdict ({error}); take it again from its results folder") from None
    return content


def entries_of(
    verdict: Mapping[str, Any], origin: Origin, sha256: str, trained: Study | None = None
) -> list[DocketEntry]:
    """What a verdict says of the claims of the built-in study whose comparisons it holds.

    `trained` is the study as it was trained: where it was changed, also under the same name, its verdict is a hint.
    """
    study, found = Study.load(origin.study), list[DocketEntry]()
    try:
        claims = study.claims if origin.quality is None else (_quality(study, origin.quality),)
        for claim in claims:
            own = [item for item in verdict["comparisons"] if _group(item, study) in (claim.comparison, *claim.also)]
            if not min((item["seeds"] for item in own), default=0):
                continue
            changed = _with_changes(origin, trained, study, claim)
            found.append(_entry(verdict, changed, sha256, study, claim, own))
    except (KeyError, TypeError, ValidationError) as error:
        said = parsing.explain(error) if isinstance(error, ValidationError) else f"{type(error).__name__} {error}"
        raise TiebreakError(f"{origin.file}: damaged verdict ({said}); take it again from its results folder") from None
    return found


def _with_changes(origin: Origin, trained: Study | None, study: Study, claim: Claim) -> Origin:
    """The origin, with the keys that were changed in the study as one more limit."""
    own, built_in = (None if trained is None else _terms(trained, claim)), _terms(study, claim)
    changed = [] if own is None else [key for key, value in built_in.items() if own[key] != value]
    if not changed:
        return origin
    limit = f"another {listed(changed)} than the full study {study.name} has"
    limits = {**origin.limits, claim.id: JOINT.join(filter(None, [origin.limits.get(claim.id, ""), limit]))}
    return origin.model_copy(update={"limits": limits})


def _terms(study: Study, claim: Claim) -> dict[str, Any]:
    """What decides the comparisons of a claim, besides data, protocol and epochs."""
    comparisons = [item for item in study.comparisons if item.name in (claim.comparison, *claim.also)]
    names = {name for item in comparisons for name in item.arms()}
    found = {key: getattr(study, key) for key in TERMS}
    found |= {"grid": study.grid, "batch": study.budget.batch}
    found["arms"] = [arm for arm in study.arms if arm.name in names]
    found["comparisons"] = [item.model_dump(exclude={"primary"}) for item in comparisons]
    return found


def _entry(
    verdict: Mapping[str, Any],
    origin: Origin,
    sha256: str,
    study: Study,
    claim: Claim,
    own: Sequence[Mapping[str, Any]],
) -> DocketEntry:
    groups = {_group(item, study) for item in own}
    left_out = [_described(study, name) for name in (claim.comparison, *claim.also) if name not in groups]
    limits = _other_terms(verdict, origin, claim)
    limits += [f"{listed(left_out)} not compared"] if left_out else []
    limits += filter(None, [origin.limits.get(claim.id, "")])
    limits += [line.split(":")[0] for line in verdict.get("warnings", ()) if "is not the published one" in line]
    return DocketEntry(
        claim=claim.id,
        outcome=outcome([item["verdict"] for item in own], claim.expect),
        hint=bool(limits),
        limits=JOINT.join(limits),
        figures=tuple(_figure(item, claim.expect) for item in own),
        n=min(item["seeds"] for item in own),
        unit="paired seeds",
        data=verdict["data"],
        protocol=verdict["protocol"],
        epochs=origin.epochs,
        device=origin.device,
        date=origin.date,
        command=origin.command,
        file=origin.file,
        sha256=sha256,
        reported=tuple(_published(item) for item in verdict["reported"] if _belongs(item, study, claim)),
        quality=origin.quality is not None,
        note=JOINT.join(
            filter(None, [origin.notes.get(claim.id, ""), ON_THIS_TEST_SET if any(map(_by_seeds, own)) else ""])
        ),
    )


def _by_seeds(item: Mapping[str, Any]) -> bool:
    """Whether a difference is decided over seeds, and not over seeds and test examples together."""
    low, high = item.get("crossed_low"), item.get("crossed_high")
    if low is None or high is None or item["verdict"] not in ("a", "b") or 0 in (item["low"], item["high"]):
        return False  # an interval that was cut at 0 says nothing here
    return bool(low <= 0 <= high)


def _group(item: Mapping[str, Any], study: Study) -> str:
    """Which comparison of the built-in study this is: a pair by its arms and metric, if they are the same."""
    own, pairs = (item["a"], item["b"], item["metric"]), [each for each in study.comparisons if isinstance(each, Pair)]
    same = (each.name for each in pairs if (each.a, each.b, each.metric or study.metric) == own)
    return next(same, str(item["group"])) if item["kind"] == "pair" else str(item["group"])


def _described(study: Study, name: str) -> str:
    """A comparison as its arms, with another metric than the study's; one of another kind than a pair by its name."""
    item = next(each for each in study.comparisons if each.name == name)
    if not isinstance(item, Pair):
        return name
    return f"{f'{item.metric}: ' if item.metric else ''}{item.a} {MINUS} {item.b}"


def _quality(study: Study, claim: str) -> Claim:
    """The primary comparison of a study that only measures what a claim means for quality."""
    primary = next(item for item in study.comparisons if item.primary)
    return Claim(
        id=claim,
        text=study.question,
        comparison=primary.name,
        data=study.data,
        protocol=study.protocol,
        epochs=study.budget.epochs,
    )


def _belongs(item: Mapping[str, Any], study: Study, claim: Claim) -> bool:
    """Whether a published figure is of an arm that the claim compares."""
    names = (claim.comparison, *claim.also)
    arms = {arm for each in study.comparisons if each.name in names for arm in each.arms()}
    own = {(each.source, each.what): each.arm for each in study.reported}
    return own.get((item["source"], item["what"])) in arms


def outcome(verdicts: Sequence[str], expect: str) -> Decided:
    """Holds when every comparison went the claim's way, fails when one was decided otherwise."""
    if all(each == expect for each in verdicts):
        return "holds"
    return "fails" if any(each not in (expect, "undecided") for each in verdicts) else "undecided"


def _other_terms(verdict: Mapping[str, Any], origin: Origin, claim: Claim) -> list[str]:
    """In which terms the runs differ from those that the claim was made for."""
    texts = []
    if verdict["data"] != claim.data:
        texts.append(f"{verdict['data']}{STAND_IN}{claim.data}")
    if verdict["protocol"] != claim.protocol:
        texts.append(f"protocol {verdict['protocol']}, not {claim.protocol}")
    if origin.epochs != claim.epochs:
        texts.append(f"{number_of(origin.epochs, 'epoch')}, not {claim.epochs}")
    return texts


def _figure(item: Mapping[str, Any], expect: str) -> Figure:
    a, b = item["a"].replace(" - ", f" {MINUS} "), item["b"].replace(" - ", f" {MINUS} ")
    if item["kind"] == "interaction":
        a, b = f"({a})", f"({b})"
    what = "least rank correlation" if item["kind"] == "agreement" else f"{item['metric']}: {a} {MINUS} {b}"
    if item["kind"] == "order":
        what = f"{a} {MINUS} {b}"
    keys = ("low", "high", "margin", "verdict")
    return Figure(what=what, value=item["difference"], expect=expect, **{key: item[key] for key in keys})


def _published(item: Mapping[str, Any]) -> PublishedFigure:
    keys = ("source", "what", "value", "mean", "low", "high")
    return PublishedFigure(**{key: item[key] for key in keys}, n=item["seeds"], percentile=_percentile(item))


def _percentile(item: Mapping[str, Any]) -> float | None:
    """As stored; of an older verdict from its prediction interval (the end that is farther was not cut)."""
    if item.get("percentile") is not None or None in (item["mean"], item["low"], item["high"]):
        return item.get("percentile")
    end = max(item["low"], item["high"], key=lambda each: abs(each - item["mean"]))
    return from_interval(item["mean"], end, item["seeds"], item["value"])
