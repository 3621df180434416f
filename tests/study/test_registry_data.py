from __future__ import annotations

from tiebreak.data import fetch
from tiebreak.study import registry


def test_every_data_set_has_a_source_and_every_source_a_name() -> None:
    assert registry.DATA.keys() == fetch.SOURCES.keys()
    assert all(source.name == name for name, source in fetch.SOURCES.items())


def test_exactly_the_embedded_data_sets_have_nothing_to_download() -> None:
    embedded = {name for name, entry in registry.DATA.items() if entry.embedded}
    assert embedded == {name for name, source in fetch.SOURCES.items() if not source.files}


def test_the_hint_for_own_data_shows_paths() -> None:
    shown = [word.strip(",") for word in registry.OWN_DATA.split() if "./" in word]
    assert shown
    assert all(registry.is_path(word) for word in shown)


def test_no_data_set_is_named_like_a_path() -> None:
    assert not any(registry.is_path(name) for name in registry.DATA)
