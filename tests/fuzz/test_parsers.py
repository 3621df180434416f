"""Every parser takes anything: it returns, or raises a TiebreakError of one line, within memory.

Inputs are good files with a few edits. `FUZZ=100000 pytest tests/fuzz` looks for longer; what it finds is kept below as
an example.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.sparse import csr_matrix

from support import hand_made, tiny
from tiebreak.data.graphs import graph_data, unpickle
from tiebreak.data.images import image_files
from tiebreak.data.images.user_images import load_user_images
from tiebreak.data.pairs import pair_data
from tiebreak.data.speech.audio import read_audio
from tiebreak.data.speech.transcripts import TABLE, read_transcripts
from tiebreak.data.text import corpus
from tiebreak.drive import messages
from tiebreak.drive.messages import EpochDone, Job, RunEnded
from tiebreak.errors import TiebreakError
from tiebreak.plan.runs import PLAN_FILE, Plan
from tiebreak.results.migration import HASHED, SCHEMA_VERSION, row_hash
from tiebreak.results.record import FileRecord, Records
from tiebreak.results.store import STORE_FILE, Store
from tiebreak.study.design_file import declared_names
from tiebreak.study.schema import Study
from tiebreak.verdict.decide import make_verdict
from tiebreak.verdict.model import VERDICT_FILE, Verdict
from tiebreak.verdict.scores import compare_scores, read_scores

MEMORY = 3 << 30  # beyond what the process has
EXAMPLES = int(os.environ.get("FUZZ", "25"))

Edits = Sequence[tuple[int, int, bytes]]  # where, how many bytes go, what comes instead
Read = Callable[[Path], object]

SPECIAL = [
    *(b"\0", b"\xff", b"\n", b"\r", b"\t", b",", b'"', b"'", b"{", b"}", b"[", b"]", b"-", b"0", b"1e999", b"NaN"),
    *(b"-1", b"\xff" * 4, b"\x7f\xff\xff\xff", b"9" * 30, b"9" * 5000, b"\xef\xbb\xbf", b"\xc3", b"\x1b[2J", b"null"),
    *(b"true", b"../", b"/", b"[" * 2000, b"(" * 300, b"a=" * 500, b"\xed\xa0\x80", "٣".encode(), "\u2028".encode()),
]
edits = st.lists(
    st.tuples(
        st.integers(0, 1 << 20),
        st.integers(0, 8) | st.integers(0, 4000),
        st.sampled_from(SPECIAL) | st.binary(max_size=8),
    ),
    min_size=1,
    max_size=4,
)
fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def edited(content: bytes, changes: Edits) -> bytes:
    for place, gone, new in changes:
        at = place % (len(content) + 1)
        content = content[:at] + new + content[at + gone :]
    return content


@pytest.fixture(autouse=True)
def _memory() -> Iterator[None]:
    """An allocation because of a claim in a file fails as a MemoryError, which no parser may raise."""
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # not here
        yield
        return
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


def check(read: Callable[[], object]) -> None:
    with suppress(TiebreakError):
        read()


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


SCORES = "arm,seed,score\n" + "".join(f"{arm},{seed},{0.5 + seed / 100}\n" for arm in "ab" for seed in range(4))
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


def lines() -> list[str]:
    epoch = EpochDone(records=(hand_made.EPOCH,), checkpoints=(hand_made.CHECKPOINT,))
    job = Job(runs=({"seed": 1},), folder="out", data_dir=None, device="cpu", checkpoints=((hand_made.CHECKPOINT,),))
    ended = RunEnded(record=hand_made.RUN, finals=(hand_made.FINAL,))
    return [messages.encode(epoch), messages.encode(ended), messages.encode_job(job)]


@fuzz
@example(which=0, changes=[(0, 1 << 20, b"[" * 100_000)])
@example(which=1, changes=[(0, 1 << 20, b'{"kind": "Note", "text": 5}')])
@given(which=st.integers(0, 2), changes=edits)
def test_messages(which: int, changes: Edits) -> None:
    line = edited(lines()[which].encode(), changes).decode(errors="replace")
    check(lambda: (messages.decode_job if which == 2 else messages.decode)(line))


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    with closing(Store.create(tmp_path)) as store, store.transaction():
        store.add_epoch(hand_made.EPOCH)
        store.add_run(hand_made.RUN)
        store.add_final(hand_made.FINAL)
        store.add_exhibit(hand_made.EXHIBIT)
        store.add_choice(hand_made.CHOICE)
        store.add_checkpoint(hand_made.CHECKPOINT)
        store.set_file(FileRecord(name="plan.json", sha256="ab" * 32))
    shutil.copy(tmp_path / STORE_FILE, tmp_path / "good")
    return tmp_path


def read_store(folder: Path) -> None:
    with closing(Store.open(folder)) as store:
        store.damage()
        store.checkpoints()
        store.files()
        store.records()


VALUES = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text() | st.binary()


@pytest.mark.parametrize("table", HASHED[SCHEMA_VERSION])
@fuzz
@example(column=2, value="[" * 100_000, changes=None)
@example(column=2, value="[]", changes=None)
@given(column=st.integers(0, 3), value=VALUES, changes=st.none() | edits)
def test_rows_of_the_store(folder: Path, table: str, column: int, value: Any, changes: Edits | None) -> None:
    """A row with another value in it, and the hash that belongs to it."""
    shutil.copy(folder / "good", folder / STORE_FILE)
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection, connection:
        (row,) = connection.execute(f"SELECT * FROM {table}").fetchall()
        content = list(row[:-1])
        at = column % len(content)
        if changes is not None:
            old = content[at]
            new = edited(old if isinstance(old, bytes) else str(old).encode(), changes)
            value = new if isinstance(old, bytes) else new.decode(errors="replace")
        content[at] = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        marks = ", ".join("?" * len(row))
        connection.execute(f"DELETE FROM {table}")
        connection.execute(f"INSERT INTO {table} VALUES ({marks})", (*content, row_hash(*content)))
    check(lambda: read_store(folder))


@fuzz
@example(changes=[(3312, 0, b"\xff")])
@given(changes=edits)
def test_bytes_of_the_store(folder: Path, changes: Edits) -> None:
    content = bytearray((folder / "good").read_bytes())
    for place, _, new in changes:
        at = place % len(content)
        content[at : at + len(new)] = new[: len(content) - at]
    (folder / STORE_FILE).write_bytes(content)
    check(lambda: read_store(folder))


@fuzz
@given(content=st.recursive(VALUES.filter(lambda value: not isinstance(value, bytes)), st.lists).map(json.dumps))
def test_json_of_any_form(tmp_path: Path, content: str) -> None:
    for name, read in ((PLAN_FILE, Plan.read), (VERDICT_FILE, Verdict.read)):
        (tmp_path / name).write_text(content, "utf-8", "replace")
        check(lambda read=read: read(tmp_path))  # type: ignore[misc]
    check(lambda: messages.decode(content))
