from __future__ import annotations

import os
from pathlib import Path

import pytest

from tiebreak.cluster import parcels
from tiebreak.cluster.parcels import Parcel, pack, stamp, unpack
from tiebreak.errors import TiebreakError


class Store(list[bytes]):
    """An object store: references are numbers."""

    def put(self, piece: bytes) -> int:
        self.append(piece)
        return len(self) - 1

    def get(self, reference: int) -> bytes:
        return self[reference]


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    root = tmp_path / "images"
    (root / "cats").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "cats" / "a.png").write_bytes(b"first")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "b.png").write_bytes(b"second")
    (root / "dogs").symlink_to(tmp_path / "linked")
    (root / "dogs" / "again").symlink_to(root)  # in a circle
    return root


def test_files_arrive_as_they_were_and_are_unpacked_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parcels, "PIECE_BYTES", 1000)
    store = Store()
    parcel = pack({"images": root, "more/note.txt": root / "cats" / "a.png"}, store.put)
    assert len(parcel.pieces) > 1
    place = unpack(parcel, tmp_path / "cache", store.get)
    assert place.name == parcel.sha256
    assert (place / "images" / "cats" / "a.png").read_bytes() == b"first"
    assert (place / "images" / "dogs" / "b.png").read_bytes() == b"second"
    assert (place / "more" / "note.txt").read_bytes() == b"first"
    assert (place / "images" / "empty").is_dir()
    store.clear()  # nothing is asked for again
    assert unpack(parcel, tmp_path / "cache", store.get) == place


def test_equal_files_have_one_sha256_wherever_and_whenever_they_were_written(root: Path, tmp_path: Path) -> None:
    first = pack({"images": root}, Store().put)
    os.utime(root / "cats" / "a.png", (1, 1))
    root.rename(tmp_path / "moved")
    assert pack({"images": tmp_path / "moved"}, Store().put).sha256 == first.sha256


def test_a_file_that_was_changed_in_the_cache_is_replaced(root: Path, tmp_path: Path) -> None:
    store = Store()
    parcel = pack({"images": root}, store.put)
    changed = unpack(parcel, tmp_path / "cache", store.get) / "images" / "cats" / "a.png"
    changed.write_bytes(b"other")
    unpack(parcel, tmp_path / "cache", store.get)
    assert changed.read_bytes() == b"first"


def test_what_arrives_damaged_is_refused_and_leaves_nothing(root: Path, tmp_path: Path) -> None:
    store = Store()
    parcel = pack({"images": root}, store.put)
    store[0] = store[0].replace(b"first", b"worst")
    with pytest.raises(TiebreakError, match="damaged"):
        unpack(parcel, tmp_path / "cache", store.get)
    assert not (tmp_path / "cache" / parcel.sha256).exists()


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(TiebreakError, match="TIEBREAK_CACHE"):
        unpack(Parcel("0" * 64, ()), tmp_path / "cache", Store().get)


def test_the_stamp_tells_files_that_were_changed_or_are_not_there(root: Path, tmp_path: Path) -> None:
    before = stamp({"images": root})
    assert before == stamp({"images": root})
    (root / "cats" / "a.png").write_bytes(b"longer than before")
    assert stamp({"images": root}) not in ("", before)
    assert stamp({"images": tmp_path / "nowhere"}) == ""
