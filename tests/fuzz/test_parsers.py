"""Every parser takes anything: it returns, or raises a TiebreakError of one line, within memory.

Inputs are good files with a few edits. `FUZZ=100000 pytest tests/fuzz` looks for longer; what it finds is kept below as
an example.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import tomli_w
from hypothesis import example, given
from PIL import Image
from scipy.sparse import csr_matrix

from support import hand_made, tiny
from support.fuzzing import Edits, check, edited, edits, fuzz, limited_memory
from tiebreak.data.graphs import graph_data, unpickle
from tiebreak.data.images import image_files
from tiebreak.data.images.kuzushiji import KANJI, read_kanji, read_kmnist_half
from tiebreak.data.images.mnist5k import load_mnist5k
from tiebreak.data.images.user_images import load_user_images
from tiebreak.data.pairs import pair_data
from tiebreak.data.speech.audio import read_audio
from tiebreak.data.speech.ljspeech import read_table
from tiebreak.data.speech.spoken_sentences import load_sentences
from tiebreak.data.speech.transcripts import TABLE, read_transcripts
from tiebreak.data.text import corpus
from tiebreak.exchange.score_sources import read_scores
from tiebreak.exchange.trainer_state import read_trainer_states
from tiebreak.plan.runs import PLAN_FILE, Plan
from tiebreak.results.checkpoint_file import CHECKPOINTS, POSITION, RUN, read_checkpoint
from tiebreak.results.record import Records
from tiebreak.results.seal import SEAL_FILE, seal_problem
from tiebreak.results.store import STORE_FILE
from tiebreak.study.design_file import declared_names
from tiebreak.study.schema import Study
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.model import VERDICT_FILE, Verdict
from tiebreak.verdict.scores import compare_scores

Read = Callable[[Path], object]


@pytest.fixture(autouse=True)
def _memory() -> Iterator[None]:
    with limited_memory():
        yield


def png(mode: str, kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise((12, 9), 50).convert(mode).save(buffer, kind)
    return buffer.getvalue()


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def sound(kind: str) -> bytes:
    soundfile = pytest.importorskip("soundfile")
    buffer = io.BytesIO()
    soundfile.write(buffer, np.sin(np.arange(2000) / 9), 8000, format=kind)
    return bytes(buffer.getvalue())


def images() -> bytes:
    arrays: dict[str, Any] = {}
    for split in ("train", "val", "test"):
        arrays[f"{split}_images"] = np.arange(4 * 9, dtype=np.uint8).reshape(4, 3, 3)
        arrays[f"{split}_labels"] = np.arange(4, dtype=np.uint8)[:, None] % 2
    return npz(**arrays)


def graph() -> bytes:
    ring = np.stack([np.arange(8), (np.arange(8) + 1) % 8], 1)
    return npz(edges=ring, features=np.eye(8), labels=np.arange(8) % 2)


def verdict() -> bytes:
    study = hand_made.study()
    return make_verdict(study, hand_made.plan(study), Records(epochs={}, runs={}, finals={})).to_json().encode()


def compared(path: Path) -> object:
    return compare_scores(read_scores(path), margin=0.01)


def surveyed(path: Path) -> object:
    return image_files.read([path], image_files.survey([path]))


def kanji() -> bytes:
    codepoints = np.array([f"U+{ord(character):04X}" for character in KANJI])
    some = np.arange(20)
    return npz(images=np.zeros((20, 3, 3), np.uint8), labels=some % 10, is_test=some < 5, codepoints=codepoints)


def kmnist_labels(path: Path) -> object:
    np.savez(path.with_name("images.npz"), np.zeros((9, 3, 3), np.uint8))
    return read_kmnist_half(path.with_name("images.npz"), path)


def digits() -> bytes:
    rows = (",".join(["0"] * 784 + [str(label)]) for label in range(10))
    return gzip.compress("\n".join(rows).encode())


def checkpoint() -> bytes:
    return safetensors.numpy.save({"a": np.zeros(3), POSITION: np.array([1, 12])}, {RUN: "mlp seed 0 (run)"})


def checkpoint_of(path: Path) -> object:
    """The file as a checkpoint whose digest is recorded, as a stranger can."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return read_checkpoint(path.parent.parent, replace(hand_made.CHECKPOINT, file=path.name, sha256=digest))


def sealed(path: Path) -> object:
    (path.parent / STORE_FILE).write_bytes(b"rows")
    return seal_problem(path.parent / STORE_FILE)


SCORES = "arm,seed,score\n" + "".join(f"{arm},{seed},{0.5 + seed / 100}\n" for arm in "ab" for seed in range(4))
JSON_LINES = "".join(
    f'{{"arm": "{arm}", "seed": {seed}, "score": {0.5 + seed / 100}}}\n' for arm in "ab" for seed in range(4)
)
WANDB = "Name,State,score\n" + "".join(
    f"{arm}-{seed},finished,{0.5 + seed / 100}\n" for arm in "ab" for seed in range(4)
)
TRAINER = '{"best_metric": 0.5, "log_history": [{"loss": 1.0, "step": 5}, {"eval_accuracy": 0.5, "epoch": 1.0}]}'
PAIRS = "".join(f"one {n}\tuno {n}\n" for n in range(20))
DESIGNS = "import torch\n\nclass Net(torch.nn.Module):\n    x = {1: (2, [3])}\n\nDESIGNS = {'net': Net, \"b\": Net}\n"
PARSERS: dict[str, tuple[str, Callable[[], bytes], Read]] = {  # name of the file, a good one, the parser
    "study": ("a.toml", lambda: tomli_w.dumps(tiny.content()).encode(), lambda path: Study.load(str(path))),
    "plan": (
        PLAN_FILE,
        lambda: hand_made.plan(hand_made.study()).model_dump_json().encode(),
        lambda path: Plan.read(path.parent),
    ),
    "verdict": (VERDICT_FILE, verdict, lambda path: Verdict.read(path.parent)),
    "scores": ("a.csv", SCORES.encode, compared),
    "json lines": ("a.jsonl", JSON_LINES.encode, compared),
    "wandb": ("b.csv", WANDB.encode, compared),
    "trainer state": ("trainer_state.json", TRAINER.encode, lambda path: read_trainer_states(path.parent)),
    "image npz": ("a.npz", images, load_user_images),
    "graph npz": ("a.npz", graph, lambda path: graph_data.load(str(path))),
    "png": ("a.png", lambda: png("RGB", "PNG"), surveyed),
    "palette": ("a.png", lambda: png("P", "PNG"), surveyed),
    "jpeg": ("a.jpg", lambda: png("RGB", "JPEG"), surveyed),
    "wav": ("a.wav", lambda: sound("WAV"), read_audio),
    "flac": ("a.flac", lambda: sound("FLAC"), read_audio),
    "pairs": ("a.tsv", PAIRS.encode, lambda path: pair_data.load(str(path))),
    "words": ("a.txt", (PAIRS * 3).encode, lambda path: corpus.load(str(path))),
    "characters": ("a.txt", (PAIRS * 3).encode, lambda path: corpus.load(str(path), level="character")),
    "design file": ("a.py", DESIGNS.encode, declared_names),
    "kanji": ("a.npz", kanji, read_kanji),
    "kmnist": ("labels.npz", lambda: npz(arr_0=np.arange(9, dtype=np.uint8)), kmnist_labels),
    "digits": ("a.csv.gz", digits, load_mnist5k),
    "clips": ("a.csv", "".join(f"LJ{n}|raw {n}|text {n}\n" for n in range(30)).encode, read_table),
    "sentences": ("a.txt", "one sentence\n".encode, lambda path: load_sentences(path, "./a.txt")),
    "checkpoint": (f"{CHECKPOINTS}/a.safetensors", checkpoint, checkpoint_of),
    "seal": (SEAL_FILE, f"{'ab' * 32}  {STORE_FILE}\n".encode, sealed),
    "matrix": ("a", lambda: pickle.dumps(csr_matrix(np.eye(4, dtype=np.float32)), 2), unpickle.read_matrix),
    "array": ("a", lambda: pickle.dumps(np.arange(6).reshape(2, 3), 3), unpickle.read_array),
    "lists": ("a", lambda: pickle.dumps({n: [n + 1, n + 2] for n in range(9)}, 2), unpickle.read_lists),
}


@pytest.mark.parametrize("name", PARSERS)
@fuzz
@example(changes=[(0, 1 << 20, b"")])
@example(changes=[(0, 1 << 20, b"[" * 100_000)])
@example(changes=[(0, 1 << 20, b"a = " + b"{b = " * 50_000)])
@example(changes=[(0, 1 << 20, b"x = " + b"-" * 200_000 + b"1")])
@example(changes=[(0, 1 << 20, b"a\0b")])
@example(changes=[(0, 1 << 20, b"a = " + b"9" * 5000)])
@given(changes=edits)
def test_a_file(tmp_path: Path, name: str, changes: Edits) -> None:
    filename, make, read = PARSERS[name]
    path = tmp_path / filename
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(edited(make(), changes))
    check(lambda: read(path))


@pytest.mark.parametrize("table", ["edges.csv", "features.csv", "labels.csv"])
@fuzz
@given(changes=edits)
def test_a_table_of_a_graph(tmp_path: Path, table: str, changes: Edits) -> None:
    path = tiny.write_graph(tmp_path) / "graph" / table
    path.write_bytes(edited(path.read_bytes(), changes))
    check(lambda: graph_data.load(str(path.parent)))


@fuzz
@example(changes=[(0, 0, b"9" * 5000)])
@given(changes=edits)
def test_transcripts(tmp_path: Path, changes: Edits) -> None:
    for number in range(3):
        (tmp_path / f"{number}.wav").write_bytes(b"")
    content = "".join(f"{number}.wav\tthe text\n" for number in range(3)).encode()
    (tmp_path / TABLE).write_bytes(edited(content, changes))
    check(lambda: read_transcripts(tmp_path))
