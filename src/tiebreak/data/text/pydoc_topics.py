"""English prose without a download: the topics of Python's own help, `pydoc_data.topics`.

A paragraph becomes a line. Rules and underlines of tables are removed, and so are repeated paragraphs: topics quote
each other at length, and test text that is also in the training text would measure memory. Topics are not divided: in
a fixed random order, each goes to test or else to validation while it fits into a tenth of the words, and to training
otherwise. The text changes with the version of Python, and the checksum with it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tiebreak.data.splits import SPLITS, permutation
from tiebreak.data.text.tokens import split_words
from tiebreak.streams import stream

SPLIT_RULE = "by topic, about 80/10/10 of the words"
_BREAK = re.compile(r"\n\s*\n")
_RULE = re.compile(r"[*=+|~^-]{3,}|\|")


@dataclass(frozen=True, kw_only=True)
class Topics:
    """The text of each split, a paragraph a line; how many repeated paragraphs were dropped."""

    texts: Mapping[str, str]
    repeated: int

    def checksum(self) -> str:
        """The sha256 of the text."""
        return hashlib.sha256("\0".join(self.texts[split] for split in SPLITS).encode()).hexdigest()


def load_topics(topics: Mapping[str, str] | None = None) -> Topics:
    """The topics of the running Python, or others of the same form, by split."""
    if topics is None:
        from pydoc_data.topics import topics as installed  # half a megabyte: only when asked for

        topics = installed
    seen: set[str] = set()
    repeated = 0
    lines: dict[str, list[str]] = {name: [] for name in sorted(topics)}
    for name, kept in lines.items():
        for line in _paragraphs(topics[name]):
            if line in seen:
                repeated += 1
            else:
                seen.add(line)
                kept.append(line)
    return Topics(texts={split: "".join(parts) for split, parts in _split(lines).items()}, repeated=repeated)


def _paragraphs(text: str) -> list[str]:
    cleaned = (" ".join(_RULE.sub(" ", paragraph).split()) for paragraph in _BREAK.split(text))
    return [line for line in cleaned if line]


def _split(lines: Mapping[str, list[str]]) -> dict[str, list[str]]:
    texts = {name: "".join(f"{line}\n" for line in kept) for name, kept in lines.items() if kept}
    sizes = {name: len(split_words(text, marks=True)) for name, text in texts.items()}
    room = dict.fromkeys(("test", "val"), sum(sizes.values()) // 10)
    found: dict[str, list[str]] = {split: [] for split in SPLITS}
    names = list(texts)
    for index in permutation(len(names), stream(0, "split", "pydoc")):
        name = names[index]
        split = next((held for held, left in room.items() if sizes[name] <= left), "train")
        if split in room:
            room[split] -= sizes[name]
        found[split].append(texts[name])
    return found
