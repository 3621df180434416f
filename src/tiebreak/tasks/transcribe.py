"""Speech recognition, letter by letter: cross-entropy of the next symbol; what the network writes by itself is scored.

| metric           | of what                                                                                   |
|------------------|-------------------------------------------------------------------------------------------|
| loss             | -log p of each symbol given those before it; as reported with smoothing, padding counted  |
| jaccard, cosine  | symbols from `<` to the first `>`, as multisets: order is ignored; mean over utterances    |
| dl               | 1 - OSA distance / greater length of the same; mean over utterances                       |
| cer, wer         | edits / length in letters or words, of all utterances together                            |
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.data.speech import alphabet, speech_sets
from tiebreak.data.speech.alphabet import END, PAD, START, SYMBOLS
from tiebreak.data.speech.front_end import FrontEnd
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.data.splits import SPLITS
from tiebreak.errors import TiebreakError
from tiebreak.models import decoding
from tiebreak.models.design import Clips
from tiebreak.study.registry import Scalar
from tiebreak.tasks import audio_input, similarity, transcribe_exhibits
from tiebreak.tasks.interface import Arrays, Hypers, Network, Split, TrainedOn
from tiebreak.tasks.losses import masked_mean, smoothed_nll
from tiebreak.tasks.reply import Answer, Reply

MOST = alphabet.LENGTH - 1  # symbols of a target, its end included


@dataclass(frozen=True)
class Transcribe:
    """The task of the `recogniser` family: features and symbols in, logits for the symbol after each out.

    A batch without `frames` is one whose padding frames are not masked: the network does not know which they are.
    """

    options: Mapping[str, Scalar] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    ordered: bool = False

    def load(self, name: str, data_dir: Path | None) -> SpeechData:
        """The data set `name`, checked."""
        return speech_sets.load(name, data_dir)

    def vocabulary(self, data: SpeechData) -> dict[str, tuple[str, ...]]:
        """The symbols."""
        return {"symbols": tuple(SYMBOLS)}

    def front_end(self, data: SpeechData) -> FrontEnd | None:
        """How sound became features; None: the features came ready-made."""
        return self._filtered(data).front_end

    def with_options(self, options: Mapping[str, Scalar]) -> Transcribe:
        """The same with other options: how long clips and targets are, what the loss counts, how it decodes."""
        return replace(self, options={**self.options, **options})

    def sizes(self, data: SpeechData, options: Mapping[str, Scalar]) -> dict[str, int]:
        """How many utterances each split has."""
        return data.sizes

    def shape(self, data: SpeechData) -> Clips:
        """Bands and frames of a clip, symbols of a target."""
        longest = max(len(text) for split in SPLITS for text in data.texts[split]) + 1
        frames = int(self.options.get("frames", 0)) or self._filtered(data).longest
        length = int(self.options.get("length", 0)) or min(longest, MOST)
        return Clips(mels=data.mels, frames=frames, symbols=len(SYMBOLS), length=length)

    def split(
        self, data: SpeechData, name: str, options: Mapping[str, Scalar], evaluation: Mapping[str, Scalar]
    ) -> Split:
        """features [N, frames, mels] float16, inputs and targets [N, length]; frames [N] where padding is masked."""
        bound = self.with_options(options)
        shape, filtered = bound.shape(data), bound._filtered(data)
        tokens = torch.tensor([alphabet.encode(text, shape.length + 1) for text in data.texts[name]])
        found = {"features": torch.from_numpy(filtered.padded(name, shape.frames))}
        found |= {"inputs": tokens[:, :-1].contiguous(), "targets": tokens[:, 1:].contiguous()}
        if bound.options.get("mask_padding", True):
            found["frames"] = torch.from_numpy(np.minimum(filtered.lengths(name), shape.frames))
        return found

    def loss(self, network: Network, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
        """The mean of -log p(symbol), with label smoothing where the run has it."""
        each, counted = self._token_losses(network, batch, hypers.get("label_smoothing"))
        return masked_mean(each, counted, weights)

    def outcomes(self, network: Any, batch: Split) -> dict[str, Tensor]:
        """The sum of -log p over each transcript, of how many symbols, the transcript, and what was written."""
        share = float(self.options.get("smoothed", 0.0))
        each, counted = self._token_losses(network, batch, share or None)
        written, lengths = self.decode(network, batch)
        return {
            "loss": (each * counted).sum(dim=1),
            "symbols": counted.sum(dim=1),
            "targets": batch["targets"],
            "written": written,
            "length": lengths,
        }

    def score(self, outcomes: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
        """The metrics; of each utterance all six and their weights are kept, the error rates as its own."""
        references = [_cut(row) for row in outcomes["targets"].astype(int).tolist()]
        written = [_cut(row) for row in outcomes["written"].astype(int).tolist()]
        pairs = list(zip(references, written, strict=True))
        alike = {"jaccard": similarity.jaccard, "cosine": similarity.cosine, "dl": similarity.damerau_levenshtein}
        kept = {name: np.array([measure(*pair) for pair in pairs]) for name, measure in alike.items()}
        found = {name: float(values.mean()) for name, values in kept.items()}
        right, output = ([_text(each) for each in some] for some in (references, written))
        words = [similarity.wer([one], [other]) for one, other in zip(right, output, strict=True)]
        kept |= {"cer": similarity.error_rates(right, output), "wer": np.array(words)}
        kept["loss"] = outcomes["loss"] / outcomes["symbols"]
        kept |= {"weight_symbols": outcomes["symbols"], "weight_characters": np.array([len(text) for text in right])}
        kept["weight_words"] = np.array([len(text.split()) for text in right])
        found |= {"cer": similarity.cer(right, output), "wer": similarity.wer(right, output)}
        found["loss"] = float(outcomes["loss"].sum(dtype=np.float64) / outcomes["symbols"].sum(dtype=np.float64))
        return found, {name: values.astype(np.float32) for name, values in kept.items()}

    def exhibits(
        self, network: nn.Module, data: SpeechData, options: Mapping[str, Scalar], examples: Sequence[int]
    ) -> dict[str, Arrays]:
        """Error by length; and, with test examples given, their transcripts and attention weights."""
        bound = self.with_options(options)
        filtered = bound._filtered(data)
        split = bound.split(data, "test", options, {})
        shown = {"curves": transcribe_exhibits.by_length(bound, network, split, filtered)}
        if examples:
            shown |= transcribe_exhibits.of_examples(bound, network, split, filtered, examples)
        return shown

    def answer(
        self, network: nn.Module, user_input: str, trained_on: TrainedOn, use_options: Mapping[str, Scalar]
    ) -> Reply:
        """The transcript of a sound file; the note gives the real-time factor."""
        assert isinstance(trained_on.shape, Clips)
        if not user_input.strip():
            raise TiebreakError("no sound file was given; give the path of a WAV or FLAC file")
        start = time.perf_counter()  # before the sound is read: all that a user waits for, once there is a network
        audio = audio_input.read_features(Path(user_input), trained_on.front_end)
        notes = [audio.note] if audio.note else []
        features, most = torch.from_numpy(audio.features), trained_on.shape.frames
        if len(features) > most:
            notes.append(f"longer than any clip of training ({len(features):,} frames, {most:,} there)")
        if not trained_on.options.get("mask_padding", True):  # it was trained on clips with zeros after them
            features = F.pad(features[:most], (0, 0, 0, max(0, most - len(features))))
        bound = self.with_options({**trained_on.options, "beam": use_options["beam"]})
        batch = {"features": features[None], "targets": torch.zeros(1, trained_on.shape.length, dtype=torch.long)}
        with torch.no_grad():
            written, _ = bound.decode(network, batch)
        notes.append(audio_input.real_time_factor(time.perf_counter() - start, audio.seconds))
        return Reply(answers=[Answer(text=alphabet.decode(written[0].tolist()))], note="; ".join(notes))

    def decode(self, network: Any, batch: Split) -> tuple[Tensor, Tensor]:
        """What the network writes by itself: tokens [B, steps] and lengths [B]."""
        length = batch["targets"].shape[1]
        steps = min(int(self.options.get("steps", 0)) or length, length)
        start = torch.full_like(batch["targets"][:, 0], START)
        state, width = network.encode(*_audio_inputs(batch)), int(self.options.get("beam", 1))
        if width == 1:
            return decoding.greedy(network.step, state, start, END, steps)
        return decoding.beam(network.step, state, start, END, steps, width)

    def _token_losses(self, network: Network, batch: Split, smoothing: Tensor | float | None) -> tuple[Tensor, Tensor]:
        """-log p of each symbol [B, length], smoothed, and whether it counts, as 0 or 1."""
        features, *frames = _audio_inputs(batch)
        each = smoothed_nll(network(features, batch["inputs"], *frames), batch["targets"], smoothing)
        if self.options.get("count_padding", False):
            return each, torch.ones_like(each)
        return each, (batch["targets"] != PAD).to(each.dtype)

    def _filtered(self, data: SpeechData) -> SpeechData:
        """The data through the mel filters that the options ask for; ready-made features are what they are."""
        if self.options.get("filters", "true") == "true" or not data.clips:
            return data
        return _with_filters(data, int(self.options["filters"]))


@lru_cache(maxsize=2)
def _with_filters(data: SpeechData, rate: int) -> SpeechData:
    """Once for each data set: opening its features takes time."""
    return data.with_filters(rate)


def _audio_inputs(batch: Split) -> tuple[Tensor, ...]:
    """The audio inputs of a network: features, and frames where the padding is masked."""
    return (batch["features"], batch["frames"]) if "frames" in batch else (batch["features"],)


def _cut(tokens: Sequence[int]) -> str:
    """The symbols from `<` to the first `>`, both included, as text; without an end, all of them."""
    return "<" + "".join(SYMBOLS[token] for token in tokens).partition(">")[0] + (">" if END in tokens else "")


def _text(symbols: str) -> str:
    """What a reader sees of it: no start, end or padding."""
    return symbols.translate({ord(mark): None for mark in SYMBOLS[: PAD + 1]})
