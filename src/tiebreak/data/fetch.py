"""Where the files of data sets lie, and whether they are the published ones.

`sources.SOURCES` is the table of file name, address, checksum and licence. `fetch` is the only function of Tiebreak
that uses the network.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tiebreak.data.checksums import file_checksum
from tiebreak.data.download import Progress, download
from tiebreak.data.sources import SOURCES, RemoteFile, Source
from tiebreak.errors import TiebreakError, nearest
from tiebreak.files import failure, inside, is_file, replacing

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


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A file as it was found; `official`: its checksum is a published one."""

    path: Path
    sha256: str
    official: bool


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
        brings = f": `pip install '{source.extra}'` brings it" if source.extra else ""
        raise TiebreakError(f"{source.name} needs no download{brings}")
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
    elsewhere = f"try again, or get {path.name} elsewhere and use --data-dir"
    try:
        with replacing(path) as part:
            try:
                download(file.address, part, file.most_bytes, progress)
            except TiebreakError as error:
                raise TiebreakError(f"{error}; {elsewhere}") from None
            if not (got := compare(part, file)).official:
                raise TiebreakError(
                    f"{file.address}: the download is not the published file (sha256:{got.sha256}, expected "
                    f"{file.checksum}) and was removed; {elsewhere}"
                )
    except OSError as error:
        raise TiebreakError(
            f"{failure(path.parent, 'cannot be written', error)}; TIEBREAK_CACHE names another folder"
        ) from None
