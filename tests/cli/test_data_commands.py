"""`tiebreak data`: list, fetch, check."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from support.cli_fixtures import Tiebreak
from tiebreak.cli import data_commands
from tiebreak.data import fetch
from tiebreak.data.images.image_data import checksum
from tiebreak.data.sources import RemoteFile, Source
from tiebreak.study import registry

MNIST5K = "4,000 train, 500 val, 500 test"


def test_data_sets_are_listed_with_licence_and_place(tiebreak: Tiebreak, tiny_data_dir: Path) -> None:
    done = tiebreak("data", "list", "--data-dir", tiny_data_dir)
    assert (done.code, done.err) == (0, "")
    for name, entry in registry.DATA.items():
        assert f"{name}  {entry.line}" in done.out
    assert f"CC BY 4.0; {tiny_data_dir / 'pneumoniamnist.npz'}" in done.out
    assert "CC BY 4.0; not here" in done.out
    assert "; embedded" in done.out


def test_a_data_folder_that_is_not_there_is_no_empty_list(tiebreak: Tiebreak) -> None:
    done = tiebreak("data", "list", "--data-dir", "nowhere")
    assert (done.code, done.out) == (2, "")
    assert "--data-dir nowhere" in done.err


def test_embedded_data_passes_its_check(tiebreak: Tiebreak) -> None:
    done = tiebreak("data", "check", "mnist5k")
    assert done.code == 0
    assert done.out.startswith(f"mnist5k: 10 classes, {MNIST5K}; 28x28 pixels, grey\n")


def test_a_copy_that_is_not_the_published_file_is_shown_and_code_2(tiebreak: Tiebreak, tiny_data_dir: Path) -> None:
    done = tiebreak("data", "check", "pneumoniamnist", "--data-dir", tiny_data_dir)
    assert done.code == 2
    assert "NOT as published" in done.out
    assert "pneumoniamnist: 2 classes, 96 train, 24 val, 24 test" in done.out
    assert done.err.startswith("tiebreak: pneumoniamnist.npz: usable, but not the published file")


def test_data_that_is_not_here_is_code_2_with_advice(tiebreak: Tiebreak, tmp_path: Path) -> None:
    done = tiebreak("data", "check", "octmnist", "--data-dir", tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "octmnist.npz not found in" in done.err
    assert "`tiebreak data fetch octmnist`" in done.err


def test_lj_speech_that_lies_unpacked_is_here(
    tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("espeakng_loader")
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "ljspeech"
    folder.mkdir()
    (folder / "metadata.csv").write_text("".join(f"LJ{index}|no. {index}|number {index}\n" for index in range(20)))
    done = tiebreak("data", "check", "spoken-ljspeech", "--data-dir", tmp_path)
    assert (done.code, done.err) == (0, "")
    assert f"{folder / 'metadata.csv'}, which has no published checksum" in done.out
    assert "spoken-ljspeech: synthetic speech, 15 train, 1 val, 4 test" in done.out
    assert listed(tiebreak, tmp_path) == ["not here", str(folder / "metadata.csv")]
    (folder / "wavs").mkdir()
    assert listed(tiebreak, tmp_path) == [str(folder), str(folder / "metadata.csv")]


def test_the_check_looks_at_the_file_that_is_loaded(
    tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("espeakng_loader")
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    table = "".join(f"LJ{index}|no. {index}|number {index}\n" for index in range(20))
    (tmp_path / "metadata_13100.csv.gz").write_bytes(gzip.compress(table.encode()))
    done = tiebreak("data", "check", "spoken-ljspeech", "--data-dir", tmp_path)
    assert done.code == 2
    assert "metadata_13100.csv.gz: usable, but not the published file" in done.err
    (tmp_path / "ljspeech").mkdir()
    (tmp_path / "ljspeech" / "metadata.csv").write_text(table)  # the loader finds it first
    done = tiebreak("data", "check", "spoken-ljspeech", "--data-dir", tmp_path)
    assert (done.code, done.err) == (0, "")


def listed(tiebreak: Tiebreak, data_dir: Path) -> list[str]:
    """Where `data list` says that ljspeech and spoken-ljspeech are."""
    lines = tiebreak("data", "list", "--data-dir", data_dir).out.splitlines()
    starts = [line.partition(" ")[0] for line in lines]
    return [lines[starts.index(name) + 1].rpartition("; ")[2] for name in ("ljspeech", "spoken-ljspeech")]


def test_sentences_of_ones_own_are_checked_as_speech(tiebreak: Tiebreak, tmp_path: Path) -> None:
    pytest.importorskip("espeakng_loader")
    (tmp_path / "said.txt").write_text("".join(f"This is number {index}.\n" for index in range(10)))
    done = tiebreak("data", "check", tmp_path / "said.txt", "--task", "transcribe")
    assert (done.code, done.err) == (0, "")
    assert f"{tmp_path / 'said.txt'}: synthetic speech, 8 train, 1 val, 1 test" in done.out


def test_sound_without_transcripts_is_taken_for_speech(tiebreak: Tiebreak, tmp_path: Path) -> None:
    (tmp_path / "one.wav").touch()
    done = tiebreak("data", "check", f"{tmp_path}/")
    assert done.code == 2
    assert "task transcribe" in done.out
    assert f"{tmp_path}: no transcripts.tsv" in done.err


@pytest.mark.parametrize("command", ["check", "fetch"])
def test_an_unknown_data_set_is_answered_with_the_nearest(command: str, tiebreak: Tiebreak) -> None:
    done = tiebreak("data", command, "octmnits")
    assert (done.code, done.out) == (2, "")
    assert "did you mean 'octmnist'?" in done.err


def test_embedded_data_needs_no_fetching(tiebreak: Tiebreak) -> None:
    done = tiebreak("data", "fetch", "mnist5k")
    assert (done.code, done.err) == (0, "")
    assert "embedded" in done.out


@pytest.fixture
def server(tiny_data_dir: Path) -> Iterator[str]:
    """The data folder, served on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    handler = functools.partial(Quiet, directory=str(tiny_data_dir))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def published(address: str, content: bytes) -> dict[str, Source]:
    file = RemoteFile(
        filename="pneumoniamnist.npz",
        address=f"{address}/pneumoniamnist.npz",
        checksum=f"sha256:{hashlib.sha256(content).hexdigest()}",
    )
    return {"pneumoniamnist": Source(name="pneumoniamnist", files=(file,), licence="CC BY 4.0", citation="Yang et al.")}


def test_data_is_fetched_checked_and_then_found(
    server: str, tiebreak: Tiebreak, tiny_data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    content = (tiny_data_dir / "pneumoniamnist.npz").read_bytes()
    monkeypatch.setattr(fetch, "SOURCES", published(server, content))
    done = tiebreak("data", "fetch", "pneumoniamnist")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("pneumoniamnist: CC BY 4.0; Yang et al.\n")
    assert done.out.endswith(f"pneumoniamnist: in {tmp_path / 'cache' / 'pneumoniamnist'}, checksums as published\n")
    assert (tmp_path / "cache" / "pneumoniamnist" / "pneumoniamnist.npz").read_bytes() == content
    assert tiebreak("data", "check", "pneumoniamnist").code == 0


def test_a_download_that_is_another_file_is_one_line_and_not_kept(
    server: str, tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "SOURCES", published(server, b"the published file"))
    done = tiebreak("data", "fetch", "pneumoniamnist")
    assert done.code == 2
    assert "the download is not the published file" in done.err
    assert done.err.count("\n") == 1
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_the_check_of_a_path_shows_classes_and_splits(
    tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("dark", "light"):
        (tmp_path / "own" / name).mkdir(parents=True)
        for index in range(10):
            Image.fromarray(np.full((28, 28), index, np.uint8)).save(tmp_path / "own" / name / f"{index}.png")
    monkeypatch.chdir(tmp_path)
    done = tiebreak("data", "check", "./own")
    assert (done.code, done.err) == (0, "")
    read_as, classes, split, *lines = done.out.splitlines()
    assert "task classify" in read_as
    assert "2 classes, 16 train, 2 val, 2 test; 28x28 pixels, grey" in classes
    assert f"sha256 {checksum('./own')}" in split
    assert lines == ["  dark: 8 train, 1 val, 1 test", "  light: 8 train, 1 val, 1 test"]


def test_the_check_of_a_path_finds_it_in_the_data_folder(tiebreak: Tiebreak, tiny_data_dir: Path) -> None:
    done = tiebreak("data", "check", "./pneumoniamnist.npz", "--data-dir", tiny_data_dir)
    assert done.code == 0
    assert "2 classes, 96 train, 24 val, 24 test" in done.out


def test_a_folder_without_a_slash_is_explained(
    tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "'own'" in tiebreak("data", "check", "own").err
    assert "./own" in tiebreak("data", "check", "own").err
    assert "did you mean 'mnist'?" in tiebreak("data", "check", "mnits").err


def test_a_task_that_does_not_exist_is_answered_with_the_nearest(tiebreak: Tiebreak) -> None:
    done = tiebreak("data", "check", "./own", "--task", "clasify")
    assert done.code == 2
    assert "did you mean 'classify'?" in done.err


def test_what_cannot_be_fetched_says_so_at_once(
    tiebreak: Tiebreak, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIEBREAK_CACHE", str(tmp_path / "cache"))
    done = tiebreak("data", "fetch", "kuzushiji-kanji10")
    assert (done.code, done.out) == (2, "")
    for part in ("no public address", "kuzushiji_kanji10.npz", str(tmp_path / "cache")):
        assert part in done.err


def test_the_command_line_knows_no_data_set_by_name() -> None:
    source = Path(data_commands.__file__).read_text("utf-8")
    assert not [name for name in registry.DATA if f'"{name}"' in source]


def test_data_that_needs_an_extra_says_how_to_install_it(tiebreak: Tiebreak, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiebreak.cli.data_commands.find_spec", lambda name: None)
    listed = " ".join(tiebreak("data", "list").out.split())
    assert listed.count("pip install 'tiebreak[speech]'") == 2
