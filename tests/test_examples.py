"""The examples run: a PyTorch script, a trainer of Hugging Face, a function of scikit-learn, a notebook."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.cli_fixtures import Tiebreak
from tiebreak import api

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_pytorch_script(tmp_path: Path, tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    study = EXAMPLES / "pytorch-script" / "dropout.toml"
    refused = tiebreak("run", study, "--quick", "--out", tmp_path / "out")
    assert (refused.code, "--allow-program" in refused.err) == (2, True)
    assert not (tmp_path / "out").exists()
    done = tiebreak("run", study, "--quick", "--out", tmp_path / "out", "--allow-program")
    assert done.code == 0, done.err
    assert "train.py" in done.out
    assert "rights" in done.out
    result = api.open_result(tmp_path / "out")
    assert {record.status for record in result.records.runs.values()} == {"done"}
    assert {len(epochs) for epochs in result.records.epochs.values()} == {4}
    assert result.verdict.primary.examples_low is not None
    assert tiebreak("run", study, "--quick", "--out", tmp_path / "out").code == 0  # allowed before


@pytest.mark.extras
def test_the_trainer_of_hugging_face(tmp_path: Path, tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("transformers", "accelerate"):
        if find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install 'tiebreak[examples]'")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    study = EXAMPLES / "hugging-face" / "smoothing.toml"
    done = tiebreak("run", study, "--seeds", "1", "--out", tmp_path / "out", "--allow-program")
    assert done.code == 0, done.err
    records = api.open_result(tmp_path / "out").records
    assert {record.status for record in records.runs.values()} == {"done"}, done.out
    assert {len(epochs) for epochs in records.epochs.values()} == {3}


@pytest.mark.parametrize("seeds", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_the_function_of_scikit_learn(tmp_path: Path, seeds: int) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    out = tmp_path / "out"
    command = [sys.executable, str(EXAMPLES / "functions" / "digits.py"), str(out), str(seeds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    verdict = api.open_result(out).verdict
    assert (verdict.finished, verdict.primary.seeds) == (2 * seeds, seeds)
    assert verdict.answer in done.stdout


def test_the_notebook(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    notebook = nbformat.read(EXAMPLES / "notebook" / "compare.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = str(notebook.cells[-1].outputs)
    assert "text/html" in shown
    assert "this process" in shown
    live = [output for output in notebook.cells[-1].outputs if "tiebreak-live" in str(output)]
    assert len(live) == 1  # updated in place
    assert "24 of 24 runs done" in str(live)
    assert "Difference in" in str(live)
    assert api.open_result(tmp_path / "runs" / "notebook").verdict.finished == 24
