from __future__ import annotations

from tiebreak.study.augment import Augment


def test_only_what_changes_images_is_named() -> None:
    assert not Augment().changes()
    assert Augment().text() == "none"
    found = Augment(shift=2, flip=True, mixup=0.2)
    assert found.changes()
    assert found.text() == "flip, shift 2, mixup 0.2"
