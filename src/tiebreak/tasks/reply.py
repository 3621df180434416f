"""The reply of a trained network to a user's input, for the command `use`. No torch: the terminal shows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer and its probability; None where there is no such number."""

    text: str
    probability: float | None = None


@dataclass(frozen=True, kw_only=True)
class AttentionWeights:
    """Attention weights of an answer: weights [rows, columns], a row for each symbol of the answer."""

    weights: npt.NDArray[np.float32]
    rows: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Reply:
    """Answers, best first, and a note on what was done to the input."""

    answers: list[Answer]
    note: str = ""
    attention: AttentionWeights | None = None
