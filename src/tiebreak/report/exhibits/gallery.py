"""The exhibits of a study as the templates read them: words and tables for both, pictures for the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tiebreak.report import formatting
from tiebreak.report.evidence import Evidence
from tiebreak.report.exhibits import (
    breakdown,
    confusion,
    exhibit_figures,
    graph_drawing,
    heatmaps,
    inline_images,
    prepared,
    samples,
)
from tiebreak.report.exhibits.breakdown import Breakdown
from tiebreak.report.exhibits.prepared import Activations, Example, Maps, Move
from tiebreak.report.figures import agreement
from tiebreak.results.example_selection import shows_moved_images
from tiebreak.text import listed

EXAMPLE_BUDGET, MAP_BUDGET = 110_000, 200_000  # characters of the page
MOST_MATRICES = 6
MOST_CLASSES = 24  # of a table with a column for each
MOST_BLOCKS, MOST_MAPS = 6, 8  # arms, and maps of one image


@dataclass(frozen=True, kw_only=True)
class ConfusionWords:
    """The most frequent confusions of an arm."""

    arm: str
    index: int
    seeds: str
    often: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Card:
    """A test image and the answers below it."""

    address: str
    example: Example


@dataclass(frozen=True, kw_only=True)
class MapRow:
    """An input image beside its maps."""

    address: str
    truth: str
    maps: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class MapBlock:
    """The first layer of one run."""

    index: int
    title: str
    rows: Sequence[MapRow]


def content(evidence: Evidence) -> dict[str, Any]:
    """The exhibits as words and tables."""
    matrices = confusion.confusions(evidence)
    moves = _moves(evidence)
    return {
        "robustness": [breakdown.table(_breakdown(move)) for move in moves],
        "move_legend": breakdown.seeds_legend(evidence, [line for move in moves for line in move.lines]),
        "examples": prepared.examples(evidence),
        "confusions": [
            ConfusionWords(arm=item.arm, index=item.index, seeds=str(item.seeds), often=item.most_frequent())
            for item in matrices
        ],
        "recalls": [(item.arm, item.index, item.recalls) for item in matrices if len(item.names) <= MOST_CLASSES],
        "class_names": matrices[0].names if matrices else [],
        "confusion_examples": max((item.examples for item in matrices), default=0),
        "activations": prepared.activations(evidence),
        "shared": _shared(evidence),
        **agreement.content(evidence),
        **samples.content(evidence),
        **heatmaps.content(evidence),
        **breakdown.content(evidence),
        **graph_drawing.content(evidence),
    }


def figures(evidence: Evidence) -> dict[str, Any]:
    """The figures of the exhibits."""
    moves = _moves(evidence)
    within = exhibit_figures.limits(moves) if moves else (0.0, 1.0)
    matrices = confusion.confusions(evidence)[:MOST_MATRICES]
    largest = max((item.largest for item in matrices), default=0.0)
    shown = prepared.examples(evidence)
    addresses = inline_images.addresses([example.image for example in shown], budget=EXAMPLE_BUDGET)
    return {
        "move_panels": [exhibit_figures.robustness_panel(move, within=within) for move in moves],
        "confusion_panels": [
            exhibit_figures.confusion_matrix(item, name=f"confusion-{number}", largest=largest)
            for number, item in enumerate(matrices)
        ],
        "confusion_wide": any(len(item.names) > exhibit_figures.NUMBERED for item in matrices),
        "confusion_largest": formatting.share(largest) if largest else "",
        "cards": [Card(address=image, example=example) for image, example in zip(addresses, shown, strict=True)],
        "map_blocks": _blocks(prepared.activations(evidence)[:MOST_BLOCKS]),
        **agreement.figures(evidence),
        **heatmaps.figures(evidence),
        **breakdown.figures(evidence),
        **graph_drawing.figures(evidence),
    }


def _moves(evidence: Evidence) -> list[Move]:
    """Accuracy on moved images, where the study asks for it: an arm is evaluated on such images."""
    return prepared.robustness(evidence) if shows_moved_images(evidence.study) else []


def _breakdown(move: Move) -> Breakdown:
    return Breakdown(
        name=move.kind, title=move.quantity, axes=(move.quantity, "test accuracy"), lines=move.lines, examples={}
    )


def _shared(evidence: Evidence) -> str:
    """Which arms are not drawn a second time, in words."""
    if not evidence.shared:
        return ""
    arms, owners = list(evidence.shared), list(dict.fromkeys(evidence.shared.values()))
    verb = "shares" if len(arms) == 1 else "share"
    return f"{listed(arms)} {verb} the trained networks of {listed(owners)}: see there."


def _blocks(found: Sequence[Activations]) -> list[MapBlock]:
    rows = [row for item in found for row in item.rows]
    images = [image for row in rows for image in (row.image, *inline_images.brightness(row.maps[:MOST_MAPS]))]
    addresses = iter(inline_images.addresses(images, budget=MAP_BUDGET))
    blocks = []
    for item in found:
        seen = [_map_row(row, addresses) for row in item.rows]
        blocks.append(MapBlock(index=item.index, title=_title(item), rows=seen))
    return blocks


def _map_row(row: Maps, addresses: Iterator[str]) -> MapRow:
    image, *maps = [next(addresses) for _ in range(1 + len(row.maps[:MOST_MAPS]))]
    return MapRow(address=image, truth=row.truth, maps=maps)


def _title(item: Activations) -> str:
    many = len(item.rows[0].maps) if item.rows else 0
    height, width = item.rows[0].maps.shape[1:] if item.rows else (0, 0)
    maps = f"{many} maps" if many <= MOST_MAPS else f"the first {MOST_MAPS} of {many:,} maps"
    seen = "; it sees the images with their pixels shuffled" if item.shuffled else ""
    return f"{item.arm}, seed {item.seed}: {maps} of {width} × {height} values{seen}"
