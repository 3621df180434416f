"""Files for the machines of a cluster: packed once by the driver, unpacked once on each machine, checked by sha256.

| in CACHE/cluster | holds                                                       |
|------------------|-------------------------------------------------------------|
| SHA256/          | the files of a parcel, whose packed form has this sha256     |
| SHA256.json      | the sha256 of each of them, compared when a worker starts    |
| SHA256.lock      | nothing: held by the process that unpacks                    |
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from tiebreak import files
from tiebreak.data.checksums import file_checksum
from tiebreak.errors import StopStudyError, TiebreakError

PIECE_BYTES = 64 << 20  # of a parcel in the object store

Put = Callable[[bytes], Any]  # bytes -> a reference to them
Get = Callable[[Any], bytes]


@dataclass(frozen=True)
class Parcel:
    """Packed files: their sha256 and references to the pieces."""

    sha256: str
    pieces: tuple[Any, ...]


def walk(roots: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """Every file and folder below the roots, by the name that it is packed under, in the order of names."""
    for top, root in sorted(roots.items()):
        yield top, root
        if root.is_dir():
            seen = {root.resolve()}
            for place, folders, names in os.walk(root, followlinks=True):
                here = Path(place)
                folders[:] = sorted(name for name in folders if (here / name).resolve() not in seen)
                seen |= {(here / name).resolve() for name in folders}
                for name in sorted([*folders, *names]):
                    yield f"{top}/{(here / name).relative_to(root).as_posix()}", here / name


def stamp(roots: Mapping[str, Path]) -> str:
    """A digest of names, sizes and times: equal where another machine sees the same files. Empty: one is missing."""
    hasher = hashlib.sha256()
    try:
        for name, path in walk(roots):
            found = path.stat()
            times = () if path.is_dir() else (found.st_size, found.st_mtime_ns)
            hasher.update(repr((name, times)).encode(errors="surrogateescape"))
    except OSError:
        return ""
    return hasher.hexdigest()


def pack(roots: Mapping[str, Path], put: Put) -> Parcel:
    """Pack the files, following links, and put them where the machines get them. Equal files, equal sha256."""
    hasher, pieces = hashlib.sha256(), []
    with tempfile.TemporaryFile() as packed:
        try:
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
                for name, path in walk(roots):
                    _add(archive, name, path)
        except OSError as error:
            raise files.failure(Path(error.filename or "."), "cannot be sent to the cluster", error) from None
        packed.seek(0)
        while piece := packed.read(PIECE_BYTES):
            hasher.update(piece)
            pieces.append(put(piece))
    return Parcel(hasher.hexdigest(), tuple(pieces))


def _add(archive: tarfile.TarFile, name: str, path: Path) -> None:
    entry = tarfile.TarInfo(name)
    if path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(entry)
    elif path.is_file():  # not a pipe or a device, which no data set has
        with path.open("rb") as file:
            entry.size = os.fstat(file.fileno()).st_size
            archive.addfile(entry, file)


def unpack(parcel: Parcel, cache: Path, get: Get) -> Path:
    """The folder with the files of the parcel. Damaged or incomplete ones are unpacked again."""
    target, listed = cache / parcel.sha256, cache / f"{parcel.sha256}.json"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{parcel.sha256}.lock"):
            if not _intact(target, listed):
                shutil.rmtree(target, ignore_errors=True)
                with tempfile.TemporaryDirectory(dir=cache) as part:
                    _unpack(parcel, Path(part), get)
                    sums = {name: file_checksum(path) for name, path in _files(Path(part) / "files")}
                    files.write(listed, json.dumps(sums))
                    (Path(part) / "files").rename(target)
    except OSError as error:
        raise files.failure(cache, "cannot be written", error, "TIEBREAK_CACHE names another folder") from None
    return target


def _unpack(parcel: Parcel, part: Path, get: Get) -> None:
    hasher, packed = hashlib.sha256(), part / "packed.tar"
    with packed.open("wb") as file:
        for reference in parcel.pieces:
            piece = get(reference)
            hasher.update(piece)
            file.write(piece)
    if hasher.hexdigest() != parcel.sha256:
        raise StopStudyError(f"files of the study arrived damaged: sha256 {hasher.hexdigest()}, not {parcel.sha256}")
    (part / "files").mkdir()
    with tarfile.open(packed) as archive:
        archive.extractall(part / "files", filter="data")
    packed.unlink()


def _intact(target: Path, listed: Path) -> bool:
    if not (target.is_dir() and listed.is_file()):
        return False
    try:
        return bool(json.loads(listed.read_bytes()) == {name: file_checksum(path) for name, path in _files(target)})
    except (ValueError, TiebreakError):
        return False


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path
