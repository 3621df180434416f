"""Names that would drive a terminal, given to many commands: nothing of them reaches the screen unescaped."""

from __future__ import annotations

import io
import json
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from PIL import Image

from support.cli_fixtures import Finished, Tiebreak, write_study
from support.command_line import Done
from tiebreak.data import fetch
from tiebreak.errors import TiebreakError

EVIL = "\x1b]0;owned\x07\x1b[2J\u202eevil"


def safe(done: Done) -> Done:
    """What was printed, after checking that it holds line breaks and nothing else that is a control character."""
    for text in (done.out, done.err):
        assert text.replace("\n", "").isprintable(), ascii(text)
        assert max(map(len, text.split("\n"))) < 1000
    assert "Traceback" not in done.err
    return done


def test_a_study_and_its_keys(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = write_study(tmp_path).rename(tmp_path / f"{EVIL}.toml")
    text = path.read_text()
    assert safe(tiebreak("plan", tmp_path / f"{EVIL}none.toml")).code == 2
    for old, new in (
        ('name = "', 'name = "\\u001b]0;'),
        ('metric = "', 'metric = "\\u001b[2J'),
        ("[budget]", '["\\u001b[2J"]\na = 1\n[budget]'),
        ('data = "', 'data = "./\\u001b[2J'),
    ):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        done = safe(tiebreak("plan", path))
        assert done.code == 2
    path.write_text(f"{EVIL} = ")
    assert safe(tiebreak("plan", path)).code == 2
    assert safe(tiebreak("run", "pooling", "--data", f"./{EVIL}")).code == 2
    assert safe(tiebreak("plan", EVIL)).code == 2
    assert safe(tiebreak(EVIL)).code == 2
    assert safe(tiebreak("plan", "pooling", f"--{EVIL}")).code == 2
    assert safe(tiebreak("new", EVIL)).code == 2


def test_scores(tiebreak: Tiebreak, tmp_path: Path) -> None:
    path = tmp_path / f"{EVIL}.csv"
    rows = [f"{arm},{seed},{0.5 + seed / 100}" for arm in (f"a{EVIL}", f"b{EVIL}") for seed in range(5)]
    path.write_text("\n".join(["arm,seed,score", *rows, f"a{EVIL},{EVIL},0.7"]))
    assert "unequal seeds" in safe(tiebreak("compare", path)).err
    done = safe(tiebreak("compare", path, "--pairing", "paired"))
    assert done.code == 0
    assert "partner, left out: 1 run" in done.out
    json.loads(safe(tiebreak("compare", path, "--json", "--pairing", "unpaired")).out)
    for content in (f"{EVIL},seed,score\na,1,2", f"arm,seed,score\na,1,{EVIL}", f"arm,seed,score\n{EVIL},1,2"):
        path.write_text(content)
        assert safe(tiebreak("compare", path)).code == 2
    path.write_text(f"arm,seed,score\n{'x' * 5000},1,2")
    assert len(safe(tiebreak("compare", path)).err) < 600


@pytest.mark.parametrize("task", ["classify", "nodes", "language", "translate", "transcribe"])
def test_data_of_a_stranger(tiebreak: Tiebreak, tmp_path: Path, task: str) -> None:
    folder = tmp_path / f"{EVIL}"
    folder.mkdir()
    hostile: dict[str, Any] = {EVIL: np.zeros(3), f"train_images{EVIL}": np.zeros(3)}
    np.savez(folder / "a.npz", **hostile)
    (folder / "a.txt").write_text(f"{EVIL}\t{EVIL}\n" * 50)
    (folder / "edges.csv").write_text(f"{EVIL},target\n1,2\n")
    (folder / "transcripts.tsv").write_text(f"{EVIL}.wav\t{EVIL}\n")
    for target in (folder, folder / "a.npz", folder / "a.txt", folder / "none"):
        assert safe(tiebreak("data", "check", f"{target}", "--task", task)).code in (0, 2)


def test_labels(tiebreak: Tiebreak, tmp_path: Path) -> None:
    image = io.BytesIO()
    Image.new("L", (4, 4)).save(image, "PNG")
    for label in (f"a{EVIL}", f"b{EVIL}"):
        (tmp_path / "images" / label).mkdir(parents=True)
        for number in range(8):
            (tmp_path / "images" / label / f"{number}.png").write_bytes(image.getvalue())
    done = safe(tiebreak("data", "check", f"{tmp_path / 'images'}"))
    assert done.code == 0
    assert "owned" in done.out


def test_a_results_folder(tiebreak: Tiebreak, finished: Finished, tmp_path: Path) -> None:
    folder = copytree(finished.folder, tmp_path / EVIL)
    for command in ("status", "verdict", "check", "report"):
        assert safe(tiebreak(command, folder)).code == 0
    (folder / "plan.json").write_text((folder / "plan.json").read_text().replace('"study": "', '"study": "\\u001b[2J'))
    (folder / "verdict.json").write_text(f'{{"{EVIL}": 1}}')
    for command in ("status", "verdict", "check", "report"):
        assert safe(tiebreak(command, folder)).code in (0, 2)
    assert safe(tiebreak("use", folder, EVIL)).code == 2
    assert safe(tiebreak("use", folder, "x.png", "--arm", EVIL)).code == 2
    assert safe(tiebreak("status", tmp_path / f"{EVIL}none")).code == 2


def test_the_words_of_a_server(tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TiebreakError(f"the server answered 404 {EVIL}")

    monkeypatch.setattr(fetch, "fetch", fail)
    assert safe(tiebreak("data", "fetch", "mnist")).code == 2
    assert safe(tiebreak("data", "fetch", EVIL)).code == 2
