from __future__ import annotations

import gc
import subprocess
import sys
import webbrowser
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

import tiebreak
from tiebreak.system import (
    collector_paused,
    cores,
    free_memory,
    in_notebook,
    open_in_browser,
    python,
    total_memory,
)


def test_files_in_the_current_folder_do_not_take_the_place_of_libraries(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("json.py", "numpy.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong file')\n")
    monkeypatch.chdir(tmp_path)
    command = python("tiebreak.drive.worker")
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    without = [part for part in command if part != "-P"]
    assert subprocess.run(without, input="", capture_output=True, check=False).returncode == 1


def test_in_the_folder_of_the_package_itself_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(tiebreak.__file__).resolve().parent.parent
    monkeypatch.chdir(folder)
    assert python("tiebreak.x") == [sys.executable, "-m", "tiebreak.x"]


def test_cores_are_those_that_the_process_may_use() -> None:
    all_cores = psutil.cpu_count() or 1
    assert 1 <= cores() <= all_cores
    if hasattr(psutil.Process, "cpu_affinity"):
        code = "import psutil; psutil.Process().cpu_affinity([psutil.Process().cpu_affinity()[0]])\n"
        code += "from tiebreak.system import cores; print(cores())"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "1\n"


def test_without_affinity_all_cores_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(psutil.Process, "cpu_affinity", raising=False)  # as on macOS
    assert cores() == psutil.cpu_count()


def test_memory_is_counted_in_bytes() -> None:
    assert 10**7 < free_memory() <= total_memory()
    assert total_memory() > 10**8


def test_the_collector_is_paused_and_goes_on() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_page_is_opened_where_there_is_a_browser(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def show(address: str) -> bool:
        opened.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", show)
    monkeypatch.setenv("BROWSER", "firefox")
    open_in_browser(tmp_path / "report.html")
    assert opened == [(tmp_path / "report.html").as_uri()]
    assert capsys.readouterr().out == ""
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    open_in_browser(tmp_path / "report.html")
    assert len(opened) == 1
    assert capsys.readouterr().out == f"{tmp_path / 'report.html'}\n"


def test_a_script_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not in_notebook()
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    assert in_notebook()
    kernel.get_ipython = SimpleNamespace  # IPython in a terminal
    assert not in_notebook()
