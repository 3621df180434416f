from __future__ import annotations

from pathlib import Path

import pytest
import torch

from support import tiny
from tiebreak import catalog
from tiebreak.errors import TiebreakError
from tiebreak.plan.resolve import complete
from tiebreak.study import registry
from tiebreak.tasks.classify_text import ClassifyText
from tiebreak.tasks.interface import TrainedOn

OPTIONS = complete(registry.TASKS["classify-text"].options, {})


def test_a_split_is_words_and_labels(tmp_path: Path) -> None:
    task = ClassifyText().with_options({**OPTIONS, "length": 3})
    data = task.load(str(tiny.write_reviews(tmp_path) / "reviews"), None)
    split = task.split(data, "val", OPTIONS, {})
    assert split["tokens"].shape == (tiny.SIZES["val"], 3)
    assert task.shape(data).classes == 2
    assert task.vocabulary(data)["classes"] == ("no", "yes")


def test_a_text_is_answered_with_classes_and_unknown_words_are_noted(tmp_path: Path) -> None:
    task = ClassifyText()
    data = task.load(str(tiny.write_reviews(tmp_path) / "reviews"), None)
    network = catalog.DESIGNS["text-bag"].network(task.shape(data), {"width": 8}, 0).eval()
    known = TrainedOn(shape=task.shape(data), vocabulary=task.vocabulary(data), options=OPTIONS)
    reply = task.answer(network, "Not good zzz", known, {})
    assert {answer.text for answer in reply.answers} == {"no", "yes"}
    assert sum(answer.probability or 0 for answer in reply.answers) == pytest.approx(1)
    assert "1 of 3" in reply.note
    with pytest.raises(TiebreakError, match="no words"):
        task.answer(network, "  ", known, {})


def test_logits_of_a_bag_do_not_depend_on_the_order_and_those_of_a_cnn_do() -> None:
    from tiebreak.models.design import Texts

    shape, words = Texts(words=9, length=4, classes=2), torch.tensor([[2, 3, 4, 5], [4, 2, 5, 3]])
    for name, same in (("text-bag", True), ("text-cnn", False), ("text-lstm", False)):
        logits = catalog.DESIGNS[name].network(shape, {"width": 8}, 0).eval()(words)
        assert torch.allclose(logits[0], logits[1], atol=1e-6) is same
