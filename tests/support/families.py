"""The families of designs as the contract tests see them: a new family joins here, and every contract test runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from support import tiny
from tiebreak import catalog
from tiebreak.data.speech import alphabet
from tiebreak.models.design import END, PADDING, START, Clips, Design, Graph, Images, Sentences, Shape, Texts, Words
from tiebreak.plan.resolve import complete
from tiebreak.study import registry
from tiebreak.study.registry import Scalar
from tiebreak.tasks.interface import Task


def designs(names: Iterable[str]) -> pytest.MarkDecorator:
    """These designs of the catalog, one after the other."""
    chosen = {name: catalog.DESIGNS[name] for name in names}
    return pytest.mark.parametrize("design", chosen.values(), ids=list(chosen))


every_design = designs(catalog.DESIGNS)


@dataclass(frozen=True, kw_only=True)
class Family:
    """A task, shapes to build for, examples of such a shape, and a data set to train on through jobs."""

    task: str
    shapes: tuple[Shape, ...]
    small: Shape  # for tests that train
    examples: Callable[[Any, int, int], dict[str, Tensor]]  # of a shape, how many, from which seed
    inputs: tuple[str, ...]  # of a batch: what a network sees and should use
    metric: str
    build: Mapping[str, Scalar] = field(default_factory=dict)  # options of designs that make tests which train quick
    options: Mapping[str, Scalar] = field(default_factory=dict)  # of the task, for jobs on the data set
    batch: int = 32  # of these jobs
    data: str
    write_data: Callable[[Path], Path]  # the data set in a folder
    writes: Writing | None = None  # of families whose networks predict the next symbol
    pad: Callable[[dict[str, Tensor]], dict[str, Tensor]] | None = None  # the same examples with more padding


@dataclass(frozen=True, kw_only=True)
class Writing:
    """How a family's networks read symbols [R, T] at once and one by one."""

    start: Callable[[Any, Mapping[str, Tensor]], Any]  # the state before the first symbol
    logits: Callable[[Any, Mapping[str, Tensor], Tensor], Tensor]  # [R, T, V] after each symbol of the batch
    symbols: Callable[[Mapping[str, Tensor]], Tensor] = itemgetter("inputs")


def images(shape: Images, count: int, seed: int) -> dict[str, Tensor]:
    """Noise, and labels that have nothing to do with it."""
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.rand(shape.inputs(count)[0].shape, generator=generator)
    labels = torch.randint(0, shape.classes, (count,), generator=generator)
    return {"images": pixels, "labels": labels}


def sentences(shape: Sentences, count: int, seed: int) -> dict[str, Tensor]:
    """Random symbols of random lengths, and targets that have nothing to do with the sources."""
    generator = torch.Generator().manual_seed(seed)

    def rows(symbols: int, length: int) -> Tensor:
        tokens = torch.randint(4, symbols, (count, length), generator=generator)
        sizes = torch.randint(1, length, (count, 1), generator=generator)
        places = torch.arange(length)
        return torch.where(places < sizes, tokens, torch.where(places == sizes, END, PADDING))

    targets = rows(shape.targets, shape.target_length)
    shifted = targets[:, :-1].masked_fill(targets[:, :-1] == END, PADDING)
    inputs = torch.cat([torch.full((count, 1), START), shifted], dim=1)
    return {"source": rows(shape.sources, shape.source_length), "inputs": inputs, "targets": targets}


def nodes(shape: Graph, count: int, seed: int) -> dict[str, Tensor]:
    """A random graph with random features, whose last node has neither, and labels that have nothing to do with it."""
    generator = torch.Generator().manual_seed(seed)
    few = shape.nodes - 1
    pairs = torch.combinations(torch.arange(few))
    pairs = pairs[torch.randperm(len(pairs), generator=generator)[: shape.edges // 2]]
    both = torch.cat([pairs, pairs.flip(1)])
    flat = (both[:, 1] * shape.nodes + both[:, 0]).sort().values
    places = torch.randperm(few * shape.features, generator=generator)[: shape.entries].sort().values
    columns = places % shape.features
    return {
        "rows": places // shape.features,
        "columns": columns,
        "values": torch.rand(shape.entries, generator=generator) + 0.1,
        "order": columns.argsort(stable=True),
        "source": flat % shape.nodes,
        "target": flat // shape.nodes,
        "node": torch.randint(0, shape.nodes, (count, 1), generator=generator),
        "labels": torch.randint(0, shape.classes, (count, 1), generator=generator),
    }


def windows(shape: Words, count: int, seed: int) -> dict[str, Tensor]:
    """Random words, of which some in the last window do not count."""
    generator = torch.Generator().manual_seed(seed)
    size = (count, shape.streams, shape.window)
    inputs, targets = (torch.randint(0, shape.words, size, generator=generator) for _ in range(2))
    real = torch.ones(size)
    real[-1, -1, -1] = 0.0
    return {"inputs": inputs, "targets": targets, "real": real}


def texts(shape: Texts, count: int, seed: int) -> dict[str, Tensor]:
    """Random words of random lengths, and labels that have nothing to do with them."""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(1, shape.words, (count, shape.length), generator=generator)
    sizes = torch.randint(1, shape.length + 1, (count, 1), generator=generator)
    labels = torch.randint(0, shape.classes, (count,), generator=generator)
    return {"tokens": torch.where(torch.arange(shape.length) < sizes, words, PADDING), "labels": labels}


def pad_texts(split: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """With three more words of padding."""
    return {**split, "tokens": F.pad(split["tokens"], (0, 3), value=PADDING)}


def clips(shape: Clips, count: int, seed: int) -> dict[str, Tensor]:
    """Noise of random lengths, and transcripts that have nothing to do with it."""
    generator = torch.Generator().manual_seed(seed)
    frames = torch.randint(1, shape.frames + 1, (count,), generator=generator)
    noise = torch.randn(shape.inputs(count)[0].shape, generator=generator)
    letters = torch.randint(4, shape.symbols, (count, shape.length), generator=generator)
    sizes = torch.randint(1, shape.length, (count, 1), generator=generator)
    places = torch.arange(shape.length)
    ends = torch.where(places == sizes, alphabet.END, alphabet.PAD)
    targets = torch.where(places < sizes, letters, ends)
    return {
        "features": noise.masked_fill((torch.arange(shape.frames) >= frames[:, None])[..., None], 0.0),
        "inputs": torch.cat([torch.full((count, 1), alphabet.START), targets[:, :-1]], dim=1),
        "targets": targets,
        "frames": frames,
    }


def pad_sentences(split: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Two more places of padding after every source, one after every target."""
    more = {"source": 2, "inputs": 1, "targets": 1}
    return {name: F.pad(values, (0, more[name]), value=PADDING) for name, values in split.items()}


def pad_windows(split: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """One more token in every window, which does not count."""
    return {name: F.pad(values, (0, 1)) for name, values in split.items()}


def pad_clips(split: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Five more frames after every clip, which are no sound."""
    return {**split, "features": F.pad(split["features"], (0, 0, 0, 5), value=7.0)}


FAMILIES: dict[str, Family] = {
    "classifier": Family(
        task="classify",
        shapes=(
            Images(channels=1, height=28, width=28, classes=4),
            Images(channels=3, height=28, width=20, classes=10),
            Images(channels=1, height=33, width=31, classes=2),
        ),
        small=Images(channels=1, height=16, width=13, classes=3),
        examples=images,
        inputs=("images",),
        metric="accuracy",
        data="pneumoniamnist",
        write_data=tiny.write_data,
    ),
    "translator": Family(
        task="translate",
        shapes=(
            Sentences(sources=34, targets=34, source_length=20, target_length=21),
            Sentences(sources=9, targets=40, source_length=4, target_length=9),
            Sentences(sources=60, targets=8, source_length=31, target_length=3),
        ),
        small=Sentences(sources=9, targets=8, source_length=6, target_length=5),
        examples=sentences,
        inputs=("source", "inputs"),
        metric="error",
        build={"width": 16},
        data="./pairs",
        write_data=tiny.write_pairs,
        writes=Writing(
            start=lambda network, split: network.encode(split["source"]),
            logits=lambda network, split, symbols: network(split["source"], symbols),
        ),
        pad=pad_sentences,
    ),
    "node-classifier": Family(
        task="nodes",
        shapes=(
            Graph(nodes=30, features=40, classes=4, edges=70, entries=200),
            Graph(nodes=12, features=3, classes=2, edges=10, entries=20),
            Graph(nodes=50, features=90, classes=7, edges=400, entries=300),
        ),
        small=Graph(nodes=18, features=11, classes=3, edges=40, entries=60),
        examples=nodes,
        inputs=("values",),
        metric="accuracy",
        build={"hidden": 8},
        data="./graph",
        write_data=tiny.write_graph,
    ),
    "language": Family(
        task="language",
        shapes=(
            Words(words=30, streams=4, window=5),
            Words(words=7, streams=1, window=2),
            Words(words=60, streams=3, window=9),
        ),
        small=Words(words=9, streams=4, window=4),  # 4 x 16 numbers of state: kernels round alike wherever they lie
        examples=windows,
        inputs=("inputs",),
        metric="perplexity",
        build={"embedding": 8, "hidden": 16, "width": 16},
        options={"streams": 4, "window": 4},
        batch=1,
        data="./text",
        write_data=tiny.write_text,
        writes=Writing(
            start=lambda network, split: network.begin(split["inputs"].flatten(0, 1).shape[0]),
            logits=lambda network, split, symbols: network(symbols.view(split["inputs"].shape)).flatten(0, 1),
            symbols=lambda split: split["inputs"].flatten(0, 1),
        ),
        pad=pad_windows,
    ),
    "text-classifier": Family(
        task="classify-text",
        shapes=(
            Texts(words=30, length=12, classes=4),
            Texts(words=5, length=2, classes=2),
            Texts(words=60, length=25, classes=3),
        ),
        small=Texts(words=9, length=6, classes=3),
        examples=texts,
        inputs=("tokens",),
        metric="accuracy",
        build={"width": 16},
        data="./reviews",
        write_data=tiny.write_reviews,
        pad=pad_texts,
    ),
    "recogniser": Family(
        task="transcribe",
        shapes=(
            Clips(mels=80, frames=50, symbols=35, length=12),
            Clips(mels=13, frames=7, symbols=35, length=3),
            Clips(mels=5, frames=33, symbols=35, length=20),
        ),
        small=Clips(mels=6, frames=9, symbols=35, length=5),
        examples=clips,
        inputs=("features", "inputs"),
        metric="dl",
        build={"width": 16},
        data="./speech",
        write_data=tiny.write_speech,
        writes=Writing(
            start=lambda network, split: network.encode(split["features"], split["frames"]),
            logits=lambda network, split, symbols: network(split["features"], symbols, split["frames"]),
        ),
        pad=pad_clips,
    ),
}


def family_of(design: Design) -> Family:
    return FAMILIES[design.family]


def task_of(design: Design) -> Task:
    return catalog.TASKS[family_of(design).task]


def build(design: Design, key: int = 1, number: int = 0) -> tuple[nn.Module, Shape]:
    """A network of the design for one of its family's shapes."""
    shape = family_of(design).shapes[number]
    return design.network(shape, options_of(design), key), shape


def options_of(design: Design) -> dict[str, Scalar]:
    """The design's options: its family's for tests, else its defaults. A user's design has none."""
    known = registry.DESIGNS[design.name].options if design.name in registry.DESIGNS else {}
    small = {name: value for name, value in family_of(design).build.items() if name in known}
    return complete(known, small)


def example(design: Design, shape: Shape, batch: int, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    """A batch, and weights that make its mean."""
    return family_of(design).examples(shape, batch, seed), torch.full((batch,), 1 / batch)


def loss(design: Design, network: nn.Module, split: Mapping[str, Tensor], weights: Tensor) -> Tensor:
    """The loss of the design's task, without label smoothing."""
    return task_of(design).loss(network, split, weights, {})


def floats(split: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """The split with its numbers in `dtype`; whole numbers stay what they are."""
    return {name: values.to(dtype) if values.is_floating_point() else values for name, values in split.items()}
