"""A data set and studies small enough to train on within a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SIZES = {"train": 96, "val": 24, "test": 24}


def write_data(folder: Path, *, key: int = 0) -> Path:
    """A pneumoniamnist.npz in the MedMNIST layout: the left half is bright in class 0, the right half in class 1."""
    random = np.random.default_rng(key)
    arrays: dict[str, Any] = {}
    for split, size in SIZES.items():
        labels = random.permutation(np.arange(size) % 2)
        images = random.integers(0, 96, (size, 28, 28))
        images[labels == 0, :, :14] += 128
        images[labels == 1, :, 14:] += 128
        arrays[f"{split}_images"] = images.astype(np.uint8)
        arrays[f"{split}_labels"] = labels[:, None].astype(np.uint8)
    np.savez(folder / "pneumoniamnist.npz", **arrays)
    return folder


def write_pairs(folder: Path, *, key: int = 0) -> Path:
    """A folder `pairs` of three .tsv files: words of up to three letters, each translated into a fixed other."""
    random = np.random.default_rng(key)
    (folder / "pairs").mkdir(exist_ok=True)
    for split, size in SIZES.items():
        words = ["".join(random.choice(list("abc"), random.integers(1, 4))) for _ in range(size)]
        lines = [f"{word}\t{word.translate(str.maketrans('abc', 'xyz'))}\n" for word in words]
        (folder / "pairs" / f"{split}.tsv").write_text("".join(lines), "utf-8")
    return folder


def write_graph(folder: Path, *, key: int = 0) -> Path:
    """A folder `graph` of three tables: a ring of 24 nodes, half of it of either class, some edges across, two nodes
    without an edge, one without a label; two features that say a little about the class, some of them 0."""
    random = np.random.default_rng(key)
    nodes, classes = 26, np.arange(26) % 26 // 13
    pairs = [(node, (node + 1) % 24) for node in range(24)] + random.integers(0, 24, (12, 2)).tolist()
    (folder / "graph").mkdir(exist_ok=True)
    present = random.uniform(size=(nodes, 2)) < 0.8
    values = np.round(random.uniform(0, 2, (nodes, 2)) + np.eye(2)[classes], 2) * present
    splits = ["train", "train", "val", "test"]
    tables = {
        "edges": ["source,target", *(f"{one},{two}" for one, two in pairs)],
        "features": ["node,one,two", *(f"{node},{row[0]},{row[1]}" for node, row in enumerate(values.tolist()))],
        "labels": ["node,label,split", *(f"{node},{classes[node]},{splits[node % 4]}" for node in range(nodes - 1))],
    }
    for name, lines in tables.items():
        (folder / "graph" / f"{name}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def write_text(folder: Path, *, key: int = 0) -> Path:
    """A folder `text` of three .txt files: lines of words, each of which has two that may follow it."""
    random = np.random.default_rng(key)
    (folder / "text").mkdir(exist_ok=True)
    for split, size in SIZES.items():
        word, lines = 0, []
        for _ in range(size // 4):
            word = (2 * word + int(random.integers(2))) % 7
            lines.append(" ".join("abcdefg"[(word + place * (1 + word % 2)) % 7] for place in range(6)))
        (folder / "text" / f"{split}.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def write_reviews(folder: Path, *, key: int = 0) -> Path:
    """A folder `reviews` of three .csv files: words of which one says the label, sometimes after `not`."""
    random = np.random.default_rng(key)
    (folder / "reviews").mkdir(exist_ok=True)
    for split, size in SIZES.items():
        lines = ["text,label"]
        for _ in range(size):
            words, good, denied = random.choice(list("abcde"), random.integers(0, 4)), *(random.integers(2, size=2) > 0)
            judged = f"{'not ' * bool(denied)}{'good' if good else 'bad'}"
            lines.append(f'"{" ".join([*words, judged])}.",{"yes" if good != denied else "no"}')
        (folder / "reviews" / f"{split}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def write_speech(folder: Path, *, key: int = 0) -> Path:
    """A folder `speech` of three splits: words of up to three letters, each letter a tone of its own."""
    import soundfile  # type: ignore[import-untyped]

    random = np.random.default_rng(key)
    for split, size in SIZES.items():
        (folder / "speech" / split).mkdir(parents=True, exist_ok=True)
        lines = []
        for index in range(size):
            word = "".join(random.choice(list("abc"), random.integers(1, 4)))
            tones = [np.sin(np.arange(480) * (0.2 + 0.3 * "abc".index(letter))) for letter in word]
            samples = np.concatenate(tones) * 0.5 + random.normal(0, 0.01, 480 * len(word))
            soundfile.write(folder / "speech" / split / f"{index}.wav", samples, 16_000)
            lines.append(f"{index}.wav\t{word}\n")
        (folder / "speech" / split / "transcripts.tsv").write_text("".join(lines), "utf-8")
    return folder


def content(**changes: Any) -> dict[str, Any]:
    """What a small study file says: two arms, one epoch, two seeds, nothing tuned.

    `changes` replace whole top-level keys; None leaves a key out.
    """
    base: dict[str, Any] = {
        "name": "tiny",
        "question": "Does max pooling classify better than stride 2?",
        "task": "classify",
        "data": "pneumoniamnist",
        "metric": "accuracy",
        "margin": 0.05,
        "seeds": 2,
        "budget": {"epochs": 1, "batch": 8},
        "fixed": {"lr": 0.1},
        "arms": [{"name": "pool", "design": "cnn-pool"}, {"name": "strided", "design": "cnn-strided"}],
        "comparisons": [{"a": "pool", "b": "strided", "primary": True}],
    }
    return {key: value for key, value in {**base, **changes}.items() if value is not None}


def language_content(**changes: Any) -> dict[str, Any]:
    """What a small study of language models says: two arms, the second with another window and optimiser."""
    small = {"embedding": 4, "hidden": 16}
    other: dict[str, Any] = {"optimiser": {"kind": "sgd-summed"}, "options": {"window": 6}}
    base: dict[str, Any] = {
        "task": "language",
        "data": "./text",
        "metric": "perplexity",
        "margin": 1.0,
        "options": {"streams": 2, "window": 3},
        "budget": {"epochs": 1, "batch": 1},
        "arms": [
            {"name": "one", "design": "rnn-sigmoid", "build": small},
            {"name": "two", "design": "rnn-sigmoid", "build": small, **other},
        ],
        "comparisons": [{"a": "one", "b": "two", "primary": True}],
    }
    return content(**{**base, **changes})
