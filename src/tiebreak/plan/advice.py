"""What to know before training: settings that have no effect, questions that the data cannot answer. A line each.

Every line says what is the matter and what to do about it. Nothing here stops a study.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tiebreak.plan.resolve import comparison_count, task_options, uses_hyper
from tiebreak.plan.runs import PlannedArm
from tiebreak.study import registry
from tiebreak.study.schema import Study
from tiebreak.text import listed, number_of

COUNTED = ("accuracy", "exact")  # metrics that count test examples
LEAST_EXAMPLES = 2  # that a margin should be worth
WIDE = 0.25  # of a metric's range: hardly the smallest difference that matters


@dataclass(frozen=True, kw_only=True)
class NetworkFacts:
    """What a plan knows of a network: the same for all arms with its design, options and shape."""

    parameters: int
    flops: int | None
    cannot_fuse: str
    run_by_run: str = ""
    dropout_layers: int
    uses_input: bool  # this and the next are checked for a user's design; tests check ours
    mixes_rows: bool  # in training, beyond batch normalisation layers
    flattens_rows: bool = False  # before batch normalisation, which then cannot leave out padding


@dataclass(frozen=True, kw_only=True)
class PlannedData:
    """What the warnings need to know about the data."""

    sizes: Mapping[str, int]
    official: bool | None
    synthetic: bool
    signed: bool = False  # a graph with features below 0


def warnings(
    study: Study, data: PlannedData, arms: Sequence[PlannedArm] = (), networks: Mapping[str, NetworkFacts] | None = None
) -> list[str]:
    """What to know before training. `networks` holds the facts of each arm's network by the arm's name."""
    found = [
        *_seeds(study),
        *_data(study, data),
        *_margins(study, data.sizes.get("test", 0)),
        *_wide_margins(study),
        *_settings(study),
        *_unused_hypers(study),
        *_same_arms(study, arms),
    ]
    for name, facts in (networks or {}).items():
        found += _network(study, study.arm(name).design, facts, data.sizes.get("train", 0))
    return list(dict.fromkeys(found))


def _seeds(study: Study) -> Iterator[str]:
    from tiebreak.verdict.statistics import too_few_seeds

    if line := too_few_seeds(study.seeds, comparison_count(study)):
        yield line


def _data(study: Study, data: PlannedData) -> Iterator[str]:
    if data.official is False:
        yield f"the file of {study.data} is not the published one: its checksum differs; results hold for your copy"
    if data.synthetic:
        yield f"{study.data} is synthetic speech, easier than human speech: results may not carry over to it"
    if data.signed and any(task_options(study, arm)["normalise_features"] for arm in study.arms):
        yield (
            f"{study.data} has features below 0, and normalise_features divides those of each node by their sum, which "
            "may be near 0; set normalise_features = false in [options]"
        )
    yield from _batches(study, data.sizes.get("train", 0))


def _batches(study: Study, train: int) -> Iterator[str]:
    """Batch sizes that the data cannot fill, and those of a task whose every step takes all of it."""
    whole = study.entry.whole
    for arm in study.arms:
        batch, key = study.batch(arm), "budget.batch" if arm.batch is None else f"arms.{arm.name}.batch"
        if whole and batch > 1:
            yield (
                f"{key} = {batch:,}: every step of the task {study.task} takes all training data, so that an epoch "
                f"has {number_of(-(-train // batch), 'step')} instead of {train:,}; set it to 1"
            )
        elif 0 < train < batch:
            yield (
                f"{key} = {batch:,} is more than the {train:,} training examples: every step takes all "
                f"of them; set it to {train} or less"
            )


def _margins(study: Study, examples: int) -> Iterator[str]:
    """Margins that are worth less than a few test examples, where the metric counts examples."""
    for item in study.comparisons:
        metric, margin = item.metric or study.metric, item.margin or study.margin
        if item.kind in ("order", "agreement") or metric not in COUNTED or not examples:
            continue
        worth = margin * examples
        if worth < LEAST_EXAMPLES:
            amount = "less than one" if worth < 1 else f"{worth:.2g}"
            yield (
                f"a margin of {margin:g} in {metric} is {amount} of the {examples:,} test examples, so that `same` can "
                f"hardly be found; set margin = {_rounded_up(LEAST_EXAMPLES / examples)} or more, or test on more "
                "examples"
            )


def _wide_margins(study: Study) -> Iterator[str]:
    """Margins that nearly every difference is within: a per cent that was written as 1, not as 0.01."""
    from tiebreak.verdict.ranges import range_of

    for item in study.comparisons:
        metric, margin = item.metric or study.metric, item.margin or study.margin
        low, high = range_of(metric, study.task)
        if item.kind not in ("order", "agreement") and math.isfinite(high - low) and margin >= WIDE * (high - low):
            yield (
                f"a margin of {margin:g} in {metric}, which goes from {low:g} to {high:g}: nearly every difference "
                "would be `same`; write a per cent as 0.01"
            )


def _rounded_up(value: float) -> str:
    """At least the value, with two digits: what is advised must be enough."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit - 1e-9) * unit:.2g}"


def _settings(study: Study) -> Iterator[str]:
    """Arms with grids of their own that are not tuned over as many settings as the others."""
    counts = {arm.name: len(study.settings(arm)) for arm in study.arms}
    if len(set(counts.values())) > 1:
        each = ", ".join(f"{name} {number}" for name, number in counts.items())
        yield (f"arms have unequal numbers of settings ({each}): more settings are an advantage; give all as many")


def _unused_hypers(study: Study) -> Iterator[str]:
    """Hyper-parameters that the update rule of an arm does not have."""
    kinds = {arm.name: study.optimiser_of(arm).kind for arm in study.arms}
    tuned = {arm.name: study.grid_of(arm) for arm in study.arms}
    for name in dict.fromkeys(name for grid in tuned.values() for name in grid):
        unused = [
            arm for arm, kind in kinds.items() if len(tuned[arm].get(name, ())) > 1 and not uses_hyper(kind, name)
        ]
        if unused:
            values = tuned[unused[0]][name]
            rules = listed(list(dict.fromkeys(kinds[arm] for arm in unused)))
            yield (
                f"grid.{name} has no effect with {rules} ({listed(unused)}): the same network is trained "
                f"{len(values)} times; remove {name} from the grid"
            )
    given = {f"fixed.{name}": (name, list(kinds.values())) for name in study.fixed}
    given |= {f"arms.{arm.name}.fixed.{name}": (name, [kinds[arm.name]]) for arm in study.arms for name in arm.fixed}
    for key, (name, used) in given.items():
        if not any(uses_hyper(kind, name) for kind in used):
            yield f"{key} has no effect with {listed(list(dict.fromkeys(used)))}; remove it"


def _same_arms(study: Study, arms: Sequence[PlannedArm]) -> Iterator[str]:
    first: dict[tuple[str, tuple[str, ...]], str] = {}
    for arm in arms:
        other = first.setdefault((arm.evaluation, tuple(arm.runs.values())), arm.name)
        if other != arm.name:
            yield f"arms {other} and {arm.name} are the same runs, so that they cannot differ; change or remove one"


def _network(study: Study, design: str, facts: NetworkFacts, train: int) -> Iterator[str]:
    if not facts.uses_input:
        yield f"{design}: its output does not depend on its input; check its forward method"
    batch = study.budget.batch
    if facts.mixes_rows and batch < train and train % batch:
        yield (
            f"{design}: it computes statistics over the batch or mixes its rows, and the last batch of an epoch "
            f"({train % batch} of {batch}) is padded with rows that count there; use nn.BatchNorm for statistics, or a"
            f" batch that divides {train:,}"
        )
    grids = [study.grid_of(arm) for arm in study.arms if arm.design == design]
    tuned = max((len(grid.get("dropout", ())) for grid in grids), default=0)
    fixed = any(
        "dropout" in given for given in (study.fixed, *(arm.fixed for arm in study.arms if arm.design == design))
    )
    if not facts.dropout_layers and (tuned > 1 or fixed):
        why = "has no dropout layer to set"
        if design not in registry.DESIGNS:
            why += " (F.dropout and the dropout of nn.MultiheadAttention keep their own rate)"
        advice = "use nn.Dropout, or remove dropout from the study" if design not in registry.DESIGNS else "remove it"
        again = f": each of the {tuned} values trains the same network" if tuned > 1 else ""
        yield f"{'grid' if tuned > 1 else 'fixed'}.dropout has no effect on {design}, which {why}{again}; {advice}"
