"""How often the files of a user's folder are hashed in one command, in the driver and in its workers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from support.small_study import small_study
from tiebreak.study import parsing

COUNTING = """
import hashlib, os
digest = hashlib.file_digest

def counted(file, algorithm):
    with open(os.environ["HASHED_FILES"], "a") as log:
        log.write(f"{os.getpid()} {file.name}\\n")
    return digest(file, algorithm)

hashlib.file_digest = counted
"""
RUN = """
import sys
from pathlib import Path
import tiebreak as tb
from tiebreak.drive.messages import ExhibitsMade, TrainingStarted
from tiebreak.drive.machine import Machine
heard = []
tb.run(tb.Study.load(sys.argv[1]), sys.argv[2], machine=Machine(workers=2), listen=heard.append)
assert any(isinstance(message, ExhibitsMade) for message in heard)
"""


def write_images(folder: Path, *, age: float) -> Path:
    """Two classes of 20 images each, modified `age` seconds ago."""
    random = np.random.default_rng(0)
    for label, bright in (("dark", 0), ("light", 150)):
        (folder / label).mkdir(parents=True)
        for number in range(20):
            path = folder / label / f"{number}.png"
            Image.fromarray(random.integers(bright, bright + 90, (28, 28), np.uint8)).save(path)
            past = path.stat().st_mtime - age
            os.utime(path, (past, past))
    return folder


@pytest.fixture(name="hashed")
def _hashed(tmp_path: Path) -> Callable[[Path], Counter[str]]:
    """Runs a study on a folder in a process of its own, and counts how often each file was hashed by all processes."""
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "sitecustomize.py").write_text(COUNTING)  # workers import it too
    log = tmp_path / "hashed.txt"
    path = os.pathsep.join([str(tmp_path / "hooks"), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run(images: Path) -> Counter[str]:
        file = tmp_path / "small.toml"
        file.write_text(parsing.to_toml(small_study(epochs=1, data=str(images))))
        subprocess.run(
            [sys.executable, "-c", RUN, str(file), str(tmp_path / "out")],
            env={**os.environ, "PYTHONPATH": path, "HASHED_FILES": str(log)},
            check=True,
        )
        return Counter(line.partition(" ")[2] for line in log.read_text().splitlines() if str(images) in line)

    return run


def test_every_file_of_a_users_folder_is_hashed_once(tmp_path: Path, hashed: Callable[[Path], Counter[str]]) -> None:
    counts = hashed(write_images(tmp_path / "images", age=3600))
    assert len(counts) == 40
    assert set(counts.values()) == {1}
    assert not (tmp_path / "out" / ".checksums.json").exists()
