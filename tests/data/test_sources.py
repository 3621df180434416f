from __future__ import annotations

import pytest

from tiebreak.data import families
from tiebreak.data.sources import SOURCES
from tiebreak.study import registry

DIGITS = {"md5": 32, "sha256": 64}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_is_complete(name: str) -> None:
    source = SOURCES[name]
    assert source.name == name
    assert source.licence
    assert source.citation
    for file in source.files:
        for checksum in (file.checksum, *file.accepted):
            algorithm, value = checksum.split(":")
            assert len(bytes.fromhex(value)) * 2 == DIGITS[algorithm]


@pytest.mark.parametrize("name", SOURCES)
def test_nobody_on_the_way_can_change_a_download(name: str) -> None:
    for file in SOURCES[name].files:
        assert not file.address or file.address.startswith("https://") or file.checksum.startswith("sha256:")


def test_files_of_a_source_have_names_of_their_own() -> None:
    for source in SOURCES.values():
        assert len({file.filename for file in source.files}) == len(source.files)
        assert all(file.filename in file.address for file in source.files if file.address)


WITH_FILES = sorted({registry.DATA[name].family for name, source in SOURCES.items() if source.files})


@pytest.mark.parametrize("family", WITH_FILES)
def test_every_loader_of_files_says_where_addresses_and_checksums_are(family: str) -> None:
    assert "sources.SOURCES" in (families.loader(family).__doc__ or "")
