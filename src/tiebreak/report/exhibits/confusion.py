"""The confusion matrix of an arm: shares over its seeds, and the most frequent confusions in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tiebreak.report import formatting
from tiebreak.report.evidence import Evidence
from tiebreak.report.exhibits import prepared

MOST_NAMED = 3  # confusions in words


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """An arm's answers at its chosen setting: `shares[t, a]` of the images of class t are classified as a."""

    arm: str
    index: int
    names: Sequence[str]
    shares: npt.NDArray[np.float64]  # [C, C], the mean over seeds; a row without test images is 0
    seeds: int
    examples: int

    @property
    def recalls(self) -> list[str]:
        """The share of each class's images that is classified right, as text."""
        return [formatting.score(float(share)) for share in self.shares.diagonal()]

    @property
    def largest(self) -> float:
        """The largest share off the diagonal."""
        return float((self.shares * (1 - np.eye(len(self.shares)))).max(initial=0.0))

    def most_frequent(self, many: int = MOST_NAMED) -> list[str]:
        """The largest shares off the diagonal, in words."""
        off = self.shares * (1 - np.eye(len(self.shares)))
        order = np.argsort(-off, axis=None, kind="stable")[:many]
        places = [divmod(int(place), len(off)) for place in order]
        return [self._describe(truth, answer) for truth, answer in places if off[truth, answer] > 0]

    def _describe(self, truth: int, answer: int) -> str:
        share = formatting.share(float(self.shares[truth, answer]))
        return f"{self.names[truth]} classified as {self.names[answer]} ({share} of its images)"


def confusions(evidence: Evidence) -> list[Confusion]:
    """The matrix of every arm whose answers are stored; those of the primary comparison first."""
    first = evidence.primary_arms()
    found = [_confusion(evidence, index, arm.name) for index, arm in enumerate(evidence.study.arms)]
    return sorted((item for item in found if item is not None), key=lambda item: item.arm not in first)


def _confusion(evidence: Evidence, index: int, arm: str) -> Confusion | None:
    for split in prepared.splits(evidence, arm):
        given = prepared.predictions(evidence, arm, len(split.labels))
        if given:
            answers = np.stack([*given.values()])  # [seeds, N]
            classes = max(len(split.names), int(split.labels.max()) + 1, int(answers.max()) + 1)
            counts = np.zeros((classes, classes))
            np.add.at(counts, (np.broadcast_to(split.labels, answers.shape), answers), 1)
            return Confusion(
                arm=arm,
                index=index,
                names=[split.name(number) for number in range(classes)],
                shares=counts / np.maximum(counts.sum(axis=1, keepdims=True), 1),
                seeds=len(given),
                examples=len(split.labels),
            )
    return None
