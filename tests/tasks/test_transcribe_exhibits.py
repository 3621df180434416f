from __future__ import annotations

import numpy as np
import torch

from support.toy_speech import toy_speech
from tiebreak.models.design import Clips
from tiebreak.models.recogniser import SpeechAttention
from tiebreak.plan.resolve import complete
from tiebreak.study import registry
from tiebreak.tasks.transcribe import Transcribe

TASK = Transcribe()
OPTIONS = complete(registry.TASKS["transcribe"].options, {})


def test_exhibits_are_what_reports_draw() -> None:
    torch.manual_seed(0)
    trained = SpeechAttention(Clips(mels=5, frames=6, length=98), 16).eval()
    shown = TASK.exhibits(trained, toy_speech(), OPTIONS, [0, 2])
    assert shown["curves"]["length_n"].sum() == 4
    assert shown["samples"]["input"].tolist() == ["a, 0.03 s", "c, 0.05 s"]
    assert shown["samples"]["reference"].tolist() == ["one", "t" * 97]
    assert shown["samples"]["heading"].tolist() == ["utterance", "transcript", "recognised"]
    assert "#" in str(TASK.exhibits(trained, toy_speech(), OPTIONS, [1])["samples"]["heading"][1]), (
        "of the mark in Two!"
    )
    for number, frames in enumerate((3, 5)):
        assert shown["attention"][f"picture_{number}"].shape == (5, frames)
        weights = shown["attention"][f"weights_{number}"]
        assert weights.shape == (len(shown["attention"][f"rows_{number}"]), -(-frames // 2))
        np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
    assert TASK.exhibits(trained, toy_speech(), OPTIONS, []).keys() == {"curves"}
