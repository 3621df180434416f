"""Python's help as a corpus."""

from __future__ import annotations

import pytest

from tiebreak.data.text import corpus
from tiebreak.data.text.corpus import load
from tiebreak.data.text.pydoc_topics import load_topics
from tiebreak.data.text.tokens import split_words

pytestmark = pytest.mark.usefixtures("empty_cache")


def test_topics_are_kept_whole_and_repeated_paragraphs_left_out() -> None:
    topics = {f"t{n:02}": f"Title {n}\n*******\n\nsome\nwords {n}\n\nsaid before" for n in range(20)}
    found = load_topics(topics)
    assert found.repeated == 19
    assert "".join(found.texts.values()).count("said before") == 1
    for text in found.texts.values():
        for line in text.splitlines():
            if line.startswith("Title"):
                assert f"some words {line.split()[1]}\n" in text


def test_pydoc_is_there_and_its_splits_share_no_paragraph() -> None:
    data = load("pydoc")
    assert len(data.words) == 2000
    held = data.sizes["val"] / sum(data.sizes.values())
    assert 0.05 < held < 0.12
    assert 0.05 < data.sizes["test"] / sum(data.sizes.values()) < 0.12
    assert data.checksum == corpus.checksum("pydoc")
    lines = {split: set(text.splitlines()) for split, text in load_topics().texts.items()}
    assert not lines["train"] & (lines["val"] | lines["test"])
    assert not lines["val"] & lines["test"]


def test_rules_of_tables_go_and_a_tenth_is_held_out() -> None:
    topics = {f"t{n:02}": f"+----+\n| {n} |\n+====+\n\n{'word ' * 10}{n}" for n in range(40)}
    found = load_topics(topics)
    assert not set("+=|") & set("".join(found.texts.values()))
    sizes = {split: len(split_words(text, marks=True)) for split, text in found.texts.items()}
    for split in ("val", "test"):
        assert 0 < sizes[split] <= sum(sizes.values()) // 10
    assert found.checksum() == load_topics(dict(reversed(topics.items()))).checksum()
