"""Text classification: negative log likelihood and accuracy, as in image classification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.data.labelled import labelled_data
from tiebreak.data.labelled.labelled_data import LENGTH, VOCABULARY, LabelledData
from tiebreak.errors import TiebreakError
from tiebreak.models.design import Texts
from tiebreak.study.registry import Scalar
from tiebreak.tasks.class_outcomes import class_loss, class_outcomes, class_score
from tiebreak.tasks.interface import Arrays, Hypers, Network, Split, TrainedOn
from tiebreak.tasks.reply import Answer, Reply


@dataclass(frozen=True)
class ClassifyText:
    """The task of the `text-classifier` family: words [B, T] in, logits [B, classes] out."""

    options: Mapping[str, Scalar] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    ordered: bool = False

    def load(self, name: str, data_dir: Path | None) -> LabelledData:
        """The data set `name`, checked, read as the options say."""
        vocabulary, length = (
            int(self.options.get(key, default)) for key, default in (("vocabulary", VOCABULARY), ("length", LENGTH))
        )
        return labelled_data.load(name, data_dir, vocabulary=vocabulary, length=length)

    def vocabulary(self, data: LabelledData) -> dict[str, tuple[str, ...]]:
        """The names of the classes, and the words by their numbers."""
        return {"classes": data.class_names, "words": data.words}

    def with_options(self, options: Mapping[str, Scalar]) -> ClassifyText:
        """The same with other options."""
        return replace(self, options={**self.options, **options})

    def sizes(self, data: LabelledData, options: Mapping[str, Scalar]) -> dict[str, int]:
        """How many texts each split has."""
        return data.sizes

    def shape(self, data: LabelledData) -> Texts:
        """The vocabulary, the longest text and the number of classes."""
        return Texts(words=len(data.words), length=data.tokens["train"].shape[1], classes=len(data.class_names))

    def split(
        self, data: LabelledData, name: str, options: Mapping[str, Scalar], evaluation: Mapping[str, Scalar]
    ) -> Split:
        """Words [N, T] and labels [N]."""
        return {"tokens": torch.from_numpy(data.tokens[name]), "labels": torch.from_numpy(data.labels[name])}

    def loss(self, network: Network, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
        """Weighted mean of -log p(label), with label smoothing where the run has it."""
        return class_loss(network(batch["tokens"]), batch, weights, hypers)

    def outcomes(self, network: Network, batch: Split) -> dict[str, Tensor]:
        """Whether each text is classified correctly, its loss, the class it is taken for and with what probability."""
        return class_outcomes(network(batch["tokens"]), batch["labels"])

    def score(self, outcomes: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
        """The metrics of image classification."""
        return class_score(outcomes)

    def exhibits(
        self, network: nn.Module, data: LabelledData, options: Mapping[str, Scalar], examples: Sequence[int]
    ) -> dict[str, Arrays]:
        """The report shows nothing beyond numbers."""
        return {}

    def answer(
        self, network: nn.Module, user_input: str, trained_on: TrainedOn, use_options: Mapping[str, Scalar]
    ) -> Reply:
        """The classes of a text, most likely first; the note says how many of its words are unknown."""
        shape = trained_on.shape
        assert isinstance(shape, Texts)
        words = labelled_data.words_of(user_input)
        if not words:
            raise TiebreakError(f"{user_input!r}: no words to classify")
        known = {word: number for number, word in enumerate(trained_on.vocabulary["words"])}
        row = torch.from_numpy(labelled_data.numbers(user_input, known, shape.length))
        with torch.no_grad():
            probabilities = F.softmax(network(row[None]), dim=1)[0].tolist()
        names = trained_on.vocabulary["classes"]
        answers = [Answer(text=name, probability=value) for name, value in zip(names, probabilities, strict=True)]
        strange = sum(word not in known for word in words)
        note = f"{strange} of {len(words)} words are not in the vocabulary" if strange else ""
        return Reply(answers=sorted(answers, key=lambda each: -(each.probability or 0.0)), note=note)
