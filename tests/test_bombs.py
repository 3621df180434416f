"""Small inputs that ask for gigabytes: each is one clear line, in a process that may use little memory."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import tiny
from tiebreak.errors import TiebreakError
from tiebreak.exchange.score_sources import read_scores
from tiebreak.study.parsing import validate
from tiebreak.study.schema import Study

pytest.importorskip("resource")

LIMITED = """
import json, resource, sys
from pathlib import Path
import numpy, scipy.sparse, scipy.sparse.csgraph, PIL.Image, soundfile
from tiebreak.data.graphs import graph_data
from tiebreak.data.images import user_images
from tiebreak.data.speech import audio
from tiebreak.errors import TiebreakError
from tiebreak.exchange.score_sources import read_scores
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))
function = {"graph": graph_data.load, "images": lambda name: user_images.load_user_images(Path(name)),
    "sound": lambda name: audio.read_audio(Path(name))}[sys.argv[1]]
try:
    print(function(sys.argv[2]))
except TiebreakError as error:
    print("refused:", error)
"""


def refusal(kind: str, path: Path) -> str:
    """The line that reading ends with, within a gigabyte beyond the libraries."""
    command = [sys.executable, "-c", LIMITED, kind, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.startswith("refused: "), done.stderr[-500:] + done.stdout[:500]
    return done.stdout


linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited by way of /proc")


@linux
def test_a_label_of_two_to_the_27(tmp_path: Path) -> None:
    labels = np.array([0, 1, 2**27])
    np.savez(tmp_path / "g.npz", edges=np.array([[0, 1], [1, 2]]), features=np.eye(3), labels=labels)
    assert "label 134217728" in refusal("graph", tmp_path / "g.npz")


@linux
@pytest.mark.slow
def test_arrays_of_zeros(tmp_path: Path) -> None:
    zeros = np.zeros((1_500_000_000 // 784, 28, 28), np.uint8)
    labels = np.zeros(len(zeros), np.uint8)
    arrays: dict[str, Any] = {f"{split}_images": zeros for split in ("train", "val", "test")}
    arrays |= {f"{split}_labels": labels for split in ("train", "val", "test")}
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    assert "unpack to" in refusal("images", tmp_path / "a.npz")


def png(path: Path, width: int, height: int) -> None:
    """A grey image of zeros, made without its pixels ever being in memory."""
    packer, packed = zlib.compressobj(9), b""
    for _ in range(height):
        packed += packer.compress(bytes(width + 1))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", packed + packer.flush()),
        (b"IEND", b""),
    )
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


@linux
def test_images_of_88_million_pixels(tmp_path: Path) -> None:
    for label in "ab":
        (tmp_path / label).mkdir()
        png(tmp_path / label / "0.png", 8000, 11_000)
        for number in range(1, 10):
            (tmp_path / label / f"{number}.png").hardlink_to(tmp_path / label / "0.png")
    assert "unpack to" in refusal("images", tmp_path)


@linux
def test_sound_of_600_seconds_at_384_kilohertz(tmp_path: Path) -> None:
    import soundfile  # type: ignore[import-untyped]

    with soundfile.SoundFile(tmp_path / "a.flac", "w", 384_000, 1, "PCM_16") as file:
        for _ in range(600):
            file.write(np.zeros(384_000, np.int16))
    assert "230,400,000 samples" in refusal("sound", tmp_path / "a.flac")


@pytest.mark.parametrize("name", ["/dev/zero", "pipe"])
def test_scores_that_never_end(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TiebreakError, match="not a regular file"):
        read_scores(tmp_path / name)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"budget": {"epochs": 1, "batch": 10**12}}, "batch"),
        ({"budget": {"epochs": 10**12, "batch": 1}}, "epochs"),
        ({"grid": {"lr": [n / 1e4 for n in range(1, 2001)], "momentum": [n / 2001 for n in range(2000)]}}, "4,000,000"),
        ({"designs_from": "a\0b.py"}, "NUL"),
        ({"data": "./a\0b"}, "NUL|no such"),
    ],
    ids=["batch", "epochs", "grid", "NUL in designs_from", "NUL in data"],
)
def test_studies_that_nobody_can_train(tmp_path: Path, change: dict[str, Any], word: str) -> None:
    import tomli_w

    path = tmp_path / "a.toml"
    path.write_text(tomli_w.dumps(tiny.content(**change)), "utf-8")
    with pytest.raises(TiebreakError, match=word):
        Study.load(str(path))


def test_the_same_from_python() -> None:
    with pytest.raises(TiebreakError, match="batch"):
        validate(Study, json.loads(json.dumps(tiny.content(budget={"epochs": 1, "batch": 10**12}))), "x")
