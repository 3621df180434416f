from __future__ import annotations

from tiebreak.data.labelled.made_reviews import BAD, GOOD, SIZES, made_reviews, reviews_checksum


def test_the_reviews_are_the_same_everywhere_and_in_one_split_only() -> None:
    found = made_reviews()
    assert {split: len(rows) for split, rows in found.items()} == SIZES
    assert len({row.text for rows in found.values() for row in rows}) == sum(SIZES.values())
    assert reviews_checksum() == "e30c26dcffb51bed8b4a65c625b2cb4ce766e7b051a707c142820dbd87ff31f3"


def test_labels_follow_from_adjectives_and_negations_and_are_balanced() -> None:
    rows = made_reviews()["train"]
    for row in rows[:200]:
        words = row.text.strip(".").replace(",", "").split()
        score, denied = 0, False
        for word in words:
            denied = word in ("not", "never") or (denied and word not in ("the",))
            if word in GOOD + BAD:
                score += 1 if (word in GOOD) != denied else -1
                denied = False
        assert row.label == ("positive" if score > 0 else "negative"), row.text
    assert 0.4 < sum(row.label == "positive" for row in rows) / len(rows) < 0.6
