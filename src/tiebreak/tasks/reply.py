"""What a trained network says when it is put to work, and where it looked. No torch: the terminal shows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One of the things that a network says of an input, and how likely it finds it; None where that means nothing."""

    text: str
    probability: float | None = None


@dataclass(frozen=True, kw_only=True)
class AttentionWeights:
    """Where a network looked while it answered: weights [rows, columns], a row for each symbol of the answer."""

    weights: npt.NDArray[np.float32]
    rows: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a network says of an input from outside, best first, and what was done to the input."""

    answers: list[Answer]
    note: str = ""
    attention: AttentionWeights | None = None
