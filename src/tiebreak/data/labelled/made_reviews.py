"""Short reviews, generated: one or three clauses such as "the soup was not very good", positive or negative.

The label is that of most clauses. A clause with `not` or `never` says the opposite of its adjective, so that the words
alone, without their order, do not decide: with one negation among three clauses, it matters which one it is in.
"""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np

from tiebreak.data.labelled.labelled_files import Labelled
from tiebreak.streams import stream

SIZES = {"train": 3000, "val": 500, "test": 500}
THINGS = ("soup", "bread", "fish", "waiter", "room", "view", "price", "music", "film", "plot", "cast", "ending")
GOOD = ("good", "great", "lovely", "fine", "superb", "pleasant", "excellent", "charming")
BAD = ("bad", "awful", "poor", "dull", "dreadful", "unpleasant", "terrible", "boring")
DEGREES = ("", "", "", "very ", "really ", "quite ")
NEGATIONS = ("not ", "never ")
LINKS = (" and ", " but ", ", and ", ", while ")
NEGATED = 0.35  # share of clauses


@cache
def made_reviews() -> dict[str, tuple[Labelled, ...]]:
    """The reviews of every split; no review is in two of them."""
    random = np.random.Generator(np.random.Philox(stream(0, "reviews")))
    found: dict[str, Labelled] = {}
    while len(found) < sum(SIZES.values()):
        row = _review(random)
        found.setdefault(row.text, row)
    rows, begin, splits = list(found.values()), 0, {}
    for split, size in SIZES.items():
        splits[split] = tuple(rows[begin : begin + size])
        begin += size
    return splits


def reviews_checksum() -> str:
    """The sha256 of all reviews as lines."""
    lines = [f"{split}\t{row.label}\t{row.text}\n" for split, rows in made_reviews().items() for row in rows]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _review(random: np.random.Generator) -> Labelled:
    clauses, score = [], 0
    for _ in range(1 if random.random() < 0.2 else 3):
        negated, good = bool(random.random() < NEGATED), bool(random.random() < 0.5)
        words = random.choice(GOOD if good else BAD)
        denial = str(random.choice(NEGATIONS)) if negated else ""
        clauses.append(f"the {random.choice(THINGS)} was {denial}{random.choice(DEGREES)}{words}")
        score += 1 if good != negated else -1
    text = clauses[0] + "".join(f"{random.choice(LINKS)}{clause}" for clause in clauses[1:])
    return Labelled(f"{text}.", "positive" if score > 0 else "negative")
