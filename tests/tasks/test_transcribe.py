from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from support.toy_speech import toy_recogniser, toy_speech
from tiebreak import catalog
from tiebreak.data.speech.alphabet import END, PAD, START, SYMBOLS, encode
from tiebreak.models import decoding
from tiebreak.models.design import Clips
from tiebreak.plan.resolve import complete
from tiebreak.study import registry
from tiebreak.tasks import similarity
from tiebreak.tasks.transcribe import Transcribe

TASK = Transcribe()
KNOWN = registry.TASKS["transcribe"].options
OPTIONS = complete(KNOWN, {})
REPORTED = complete(KNOWN, registry.TASKS["transcribe"].protocols["as-reported"].options)


def test_audited_clips_and_targets_are_as_long_as_the_longest() -> None:
    shape = TASK.with_options(OPTIONS).shape(toy_speech())
    assert shape == Clips(mels=5, frames=6, symbols=35, length=98)  # 97 letters and the end
    split = TASK.split(toy_speech(), "val", OPTIONS, {})
    assert split["features"].shape == (4, 6, 5)
    assert split["features"].dtype == torch.float16
    assert split["frames"].tolist() == [3, 4, 5, 6]
    assert (split["features"][0, 3:] == 0).all()
    assert split["inputs"][0, :5].tolist() == [START, *encode("one", 99)[1:4], END]
    assert split["targets"][0, :5].tolist() == [*encode("one", 99)[1:4], END, PAD]
    assert split["targets"][2, -1] == END
    assert split["targets"][3, 0] == END
    assert SYMBOLS[split["targets"][1, 3]] == "#"


def test_as_reported_clips_have_2754_frames_that_nobody_masks() -> None:
    assert TASK.with_options(REPORTED).shape(toy_speech()) == Clips(mels=5, frames=2754, symbols=35, length=98)
    split = TASK.split(toy_speech(), "test", REPORTED, {})
    assert split["features"].shape == (4, 2754, 5)
    assert "frames" not in split


def doubled(options: dict[str, registry.Scalar]) -> dict[str, Tensor]:
    split = TASK.split(toy_speech(), "test", {**options, "frames": 6}, {})
    return {name: values.double() if name == "features" else values for name, values in split.items()}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_torchs_over_the_real_symbols_of_the_batch(smoothing: float) -> None:
    split, weights = doubled(OPTIONS), torch.full((4,), 0.25, dtype=torch.float64)
    hypers = {"label_smoothing": torch.tensor(smoothing, dtype=torch.float64)} if smoothing else {}
    with torch.no_grad():
        found = TASK.with_options(OPTIONS).loss(toy_recogniser(), split, weights, hypers)
        logits = toy_recogniser()(split["features"], split["inputs"], split["frames"])
    wanted = F.cross_entropy(
        logits.flatten(0, 1), split["targets"].flatten(), ignore_index=PAD, label_smoothing=smoothing
    )
    torch.testing.assert_close(found, wanted)


def test_as_reported_padding_counts_in_the_loss_and_smoothing_in_what_is_reported() -> None:
    split, task = doubled(REPORTED), TASK.with_options({**REPORTED, "frames": 6})
    weights = torch.full((4,), 0.25, dtype=torch.float64)
    hypers = {"label_smoothing": torch.tensor(0.1, dtype=torch.float64)}
    with torch.no_grad():
        found = task.loss(toy_recogniser(), split, weights, hypers)
        logits = toy_recogniser()(split["features"], split["inputs"])
        outcomes = {name: values.numpy() for name, values in task.outcomes(toy_recogniser(), split).items()}
    wanted = F.cross_entropy(logits.flatten(0, 1), split["targets"].flatten(), label_smoothing=0.1)
    torch.testing.assert_close(found, wanted)
    assert task.score(outcomes)[0]["loss"] == pytest.approx(float(wanted))
    assert outcomes["written"].shape == (4, 98)


def test_an_example_of_weight_zero_does_not_count() -> None:
    split = doubled(OPTIONS)
    weights = torch.tensor([0.5, 0.5, 0.0, 0.0], dtype=torch.float64)
    with torch.no_grad():
        padded = TASK.loss(toy_recogniser(), split, weights, {})
        fewer = TASK.loss(toy_recogniser(), {name: values[:2] for name, values in split.items()}, weights[:2], {})
    torch.testing.assert_close(padded, fewer)


def outcomes_of(wanted: list[str], written: list[str], length: int = 8) -> dict[str, NDArray[np.float32]]:
    """As evaluation hands them over: everything as float32; what was written is all ends after its first."""
    right = [encode(text, length + 1)[1:] for text in wanted]
    said = [[SYMBOLS.index(symbol) for symbol in text.ljust(length, ">")[:length]] for text in written]
    many = np.array([row.index(END) + 1 for row in right], np.float32)
    return {
        "loss": many * np.float32(0.5),
        "symbols": many,
        "targets": np.array(right, np.float32),
        "written": np.array(said, np.float32),
        "length": np.array([len(text) for text in written], np.float32),
    }


def test_similarities_go_from_the_start_to_the_first_end() -> None:
    found, kept = TASK.score(outcomes_of(["ab", "form"], ["ab", "from"]))
    assert (found["jaccard"], found["cosine"]) == (1.0, 1.0)  # order is ignored
    assert kept["dl"].tolist() == pytest.approx([1.0, 1 - 1 / 6])  # one swap in `<form>`
    assert found["dl"] == pytest.approx(1 - 1 / 12)
    assert found["loss"] == pytest.approx(0.5)
    assert found["cer"] == pytest.approx(2 / 6)
    assert found["wer"] == pytest.approx(1 / 2)
    assert found.keys() == registry.TASKS["transcribe"].metrics.keys()
    assert kept.keys() == found.keys() | {"weight_symbols", "weight_characters", "weight_words"}


def test_a_transcript_that_does_not_end_has_no_end() -> None:
    found, _ = TASK.score(outcomes_of(["abc"], ["abcabcab"]))
    assert found["jaccard"] == pytest.approx(similarity.jaccard("<abc>", "<abcabcab"))
    assert found["dl"] == pytest.approx(similarity.damerau_levenshtein("<abc>", "<abcabcab"))
    assert found["cer"] == pytest.approx(5 / 3)


def test_the_same_letters_over_and_over_score_as_the_reports_found_for_the() -> None:
    """Jaccard and cosine see letters only: any text of the right letters is perfect, in whatever order."""
    found, _ = TASK.score(outcomes_of(["dcba abcd"], ["abcd dcba"], length=12))
    assert found["jaccard"] == found["cosine"] == 1.0
    assert found["dl"] < 0.6


class Sure(nn.Module):
    """A recogniser of great contrasts, so that what it writes ends here and there or never, and how often it wrote."""

    def __init__(self, design: str, seed: int) -> None:
        super().__init__()
        self.inner: Any = catalog.DESIGNS[design].network(Clips(mels=5, frames=6, length=98), {"width": 16}, seed)
        for name, parameter in self.inner.named_parameters():
            if name.startswith(("output.weight", "lstm")):
                parameter.data *= 9
        self.double().eval()
        self.steps = 0

    def forward(self, *given: Tensor) -> Any:
        return self.inner(*given)

    def encode(self, *given: Tensor) -> Any:
        return self.inner.encode(*given)

    def step(self, *given: Any) -> Any:
        self.steps += 1
        return self.inner.step(*given)


@pytest.mark.parametrize("options", [OPTIONS, REPORTED], ids=["audited", "as-reported"])
@pytest.mark.parametrize("design", ["speech-lstm", "speech-attention", "speech-taylor"])
def test_stopping_early_changes_no_outcome(
    design: str, options: dict[str, registry.Scalar], monkeypatch: pytest.MonkeyPatch
) -> None:
    split, lengths = doubled(options), set()
    for seed, beam in itertools.product((3, 9, 10), (1, 3)):
        task = TASK.with_options({**options, "frames": 6, "beam": beam})
        early, late = Sure(design, seed), Sure(design, seed)
        with torch.no_grad():
            found = task.outcomes(early, split)
            with monkeypatch.context() as patch:
                patch.setattr(decoding, "_all_ended", lambda ended, done: False)
                wanted = task.outcomes(late, split)
        assert late.steps == 98
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
        if beam == 1:
            assert early.steps == min(98, int(wanted["length"].max()) + 1)
            lengths |= set(wanted["length"].tolist())
    assert len(lengths) > 2, "the networks end at different steps"
