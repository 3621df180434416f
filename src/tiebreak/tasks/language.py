"""Language modelling: the cross-entropy of the next token, and the perplexity of a whole text.

    loss = - (1 / n) sum_t log p(x_t | x_1 .. x_{t-1}),   perplexity = exp(loss)       over the n tokens of a split

A text is cut into S streams that are read side by side, and these into windows of T tokens. An example is one window of
all streams, inputs [S, T] and targets [S, T]; the next example goes on where it ends. Every token but the text's first
(it has none before it) is a target exactly once: what fills up streams and windows does not count. At the start of a
stream nothing is known of what came before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.data.splits import SPLITS
from tiebreak.data.text import corpus, tokens
from tiebreak.data.text.corpus import CorpusData
from tiebreak.errors import TiebreakError
from tiebreak.models import decoding
from tiebreak.models.decoding import Sampling
from tiebreak.models.design import Words
from tiebreak.streams import stream
from tiebreak.study.registry import Scalar
from tiebreak.tasks.interface import Arrays, Hypers, Network, Split, TrainedOn
from tiebreak.tasks.losses import smoothed_cross_entropy, weighted
from tiebreak.tasks.reply import Answer, Reply

STREAMS, WINDOW = 128, 10  # as reported; options have the same defaults
PROMPT = "in palo alto"  # of report R4
SHOWN, BEGINNING, LONGEST = 4, 3, 40  # texts that a report shows, the words that each begins with, those written


@dataclass(frozen=True)
class Language:
    """The task of the `language` family: tokens in, logits for the token after each out."""

    options: Mapping[str, Scalar] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    ordered: bool = True

    def load(self, name: str, data_dir: Path | None) -> CorpusData:
        """The corpus `name`, checked, read as the options say."""
        level = str(self.options.get("level", "default"))
        size = int(self.options.get("vocabulary", 0)) or None
        return corpus.load(
            name, data_dir, level=None if level == "default" else cast(tokens.Level, level), vocabulary=size
        )

    def vocabulary(self, data: CorpusData) -> dict[str, tuple[str, ...]]:
        """The words by their numbers, and what is needed to cut a text into such."""
        return {"words": data.words, "level": (data.level,), "marks": ("marks",) if data.marks else ()}

    def with_options(self, options: Mapping[str, Scalar]) -> Language:
        """The same with other options."""
        return replace(self, options={**self.options, **options})

    def sizes(self, data: CorpusData, options: Mapping[str, Scalar]) -> dict[str, int]:
        """How many windows each split has."""
        sizes = {}
        for name in SPLITS:
            streams, window = _cut(options, name)
            length = -(-(len(data.tokens[name]) - 1) // streams)
            sizes[name] = -(-length // window)
        return sizes

    def shape(self, data: CorpusData) -> Words:
        """Words of the vocabulary, and the window of training; texts too short for their windows are refused here."""
        for name in SPLITS:
            streams, window = _cut(self.options, name)
            data.check_window(window, streams)
        streams, window = _cut(self.options, "train")
        return Words(words=len(data.words), streams=streams, window=window)

    def split(
        self, data: CorpusData, name: str, options: Mapping[str, Scalar], evaluation: Mapping[str, Scalar]
    ) -> Split:
        """inputs and targets [N, S, T], and `real`: 0 where a target only fills up a stream or a window."""
        streams, window = _cut(options, name)
        data.check_window(window, streams)
        text = torch.from_numpy(data.tokens[name].astype(np.int64))
        inputs, targets, real = (
            _windows(each, streams, window) for each in (text[:-1], text[1:], torch.ones(len(text) - 1))
        )
        return {"inputs": inputs, "targets": targets, "real": real}

    def loss(self, network: Network, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
        """The mean of -log p over the real tokens of a window, with label smoothing where the run has it."""
        each = self._minus_log_p(network, batch, hypers)
        real = batch["real"].to(each.dtype)
        return weighted(weights, (each * real).sum(dim=(1, 2)) / real.sum(dim=(1, 2)))

    def outcomes(self, network: Network, batch: Split) -> dict[str, Tensor]:
        """The sum of -log p over each window's real tokens, and how many these are."""
        each = self._minus_log_p(network, batch, {})
        real = batch["real"].to(each.dtype)
        return {"loss": (each * real).sum(dim=(1, 2)), "tokens": real.sum(dim=(1, 2))}

    def _minus_log_p(self, network: Network, batch: Split, hypers: Hypers) -> Tensor:
        return smoothed_cross_entropy(network(batch["inputs"]), batch["targets"], hypers.get("label_smoothing"))

    def score(self, outcomes: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
        """Loss and perplexity of the whole text; those of each window are kept, and how many tokens it has."""
        loss = float(outcomes["loss"].sum(dtype=np.float64) / outcomes["tokens"].sum(dtype=np.float64))
        each = (outcomes["loss"] / outcomes["tokens"]).astype(np.float32)
        with np.errstate(over="ignore"):
            found = {"perplexity": float(np.exp(loss)), "loss": loss}
            kept = {"perplexity": np.exp(each), "loss": each, "weight_tokens": outcomes["tokens"].astype(np.float32)}
        return found, kept

    @property
    def trains_in_evaluation(self) -> bool:
        """Whether passes over validation and test text train too."""
        return bool(self.options.get("evaluation_trains", False))

    @property
    def evaluates_in_training_mode(self) -> bool:
        """Whether dropout is on in evaluation."""
        return self.trains_in_evaluation or bool(self.options.get("training_mode", False))

    def outcomes_from_losses(self, split: Split, losses: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Outcomes from the mean loss of every window, before the update on it."""
        counts = split["real"].sum(dim=(1, 2)).cpu().numpy().astype(np.float64)
        return {"loss": losses * counts, "tokens": counts}

    def exhibits(
        self, network: nn.Module, data: CorpusData, options: Mapping[str, Scalar], examples: Sequence[int]
    ) -> dict[str, Arrays]:
        """With test examples given: texts that the network writes after beginnings that do not depend on them."""
        if not examples:
            return {}
        written = []
        beginnings = _beginnings(data)
        for number, beginning in enumerate(beginnings):
            sampling = Sampling(seed=stream(0, "samples", number))
            (text,) = _continue(network, beginning, data.end, LONGEST, 1, sampling)
            written.append(corpus.join(text, data))
        return {
            "samples": {
                "input": np.asarray([corpus.join(beginning, data) for beginning in beginnings]),
                "reference": np.asarray([""] * len(beginnings)),
                "output": np.asarray(written),
                "heading": np.asarray(["beginning", "", "continuation"]),
            }
        }

    def answer(
        self, network: nn.Module, user_input: str, trained_on: TrainedOn, use_options: Mapping[str, Scalar]
    ) -> Reply:
        """The continuations of a text, `n` of them; the note lists unknown words."""
        words, level = trained_on.vocabulary["words"], cast(tokens.Level, trained_on.vocabulary["level"][0])
        pieces = (
            list(user_input)
            if level == "character"
            else tokens.split_words(user_input, bool(trained_on.vocabulary["marks"]))
        )
        end = words.index(tokens.END) if tokens.END in words else None
        if not pieces and end is None:
            raise TiebreakError(f"{user_input!r}: nothing to continue; give the beginning of a text")
        prompt = tokens.number(pieces, words)  # raises where a word is unknown and there is no <unk>
        unknown = list(dict.fromkeys(piece for piece in pieces if piece not in set(words)))
        notes = [f"not in the vocabulary, read as {tokens.UNKNOWN}: {', '.join(unknown)}"] if unknown else []
        sampling = Sampling(
            temperature=float(use_options["temperature"]),
            top_k=int(use_options["top_k"]),
            top_p=float(use_options["top_p"]),
            seed=int(use_options["sampling_seed"]),
        )
        texts = _continue(network, prompt, end, int(use_options["words"]), int(use_options["n"]), sampling)
        whole = [[*pieces, *(words[token] for token in text)] for text in texts]
        return Reply(answers=[Answer(text=tokens.join_tokens(each, level)) for each in whole], note="; ".join(notes))


def _cut(options: Mapping[str, Scalar], split: str) -> tuple[int, int]:
    """Streams and window of a split."""
    window = int(options.get("window", WINDOW))
    if split != "train":
        window = int(options.get("evaluation_window", 0)) or window
    return int(options.get("streams", STREAMS)), window


def _windows(text: Tensor, streams: int, window: int) -> Tensor:
    """A text as windows [N, S, T] of streams that follow one another in it, filled up with 0."""
    length = -(-len(text) // streams)
    windows = -(-length // window)
    rows = F.pad(text, (0, streams * length - len(text))).view(streams, length)
    return F.pad(rows, (0, windows * window - length)).view(streams, windows, window).transpose(0, 1).contiguous()


def _beginnings(data: CorpusData) -> list[npt.NDArray[np.int32]]:
    """The beginning of report R4 where its words are known, and those of the first long lines of the test text."""
    found = []
    if data.level == "word" and set(PROMPT.split()) <= set(data.words):
        found.append(corpus.encode(PROMPT, data))
    text = data.tokens["test"]
    size = BEGINNING if data.level == "word" else 5 * BEGINNING
    lines = np.arange(0, len(text), 10 * size) if data.end is None else np.flatnonzero(text == data.end) + 1
    for start in lines.tolist():
        beginning, ahead = text[start : start + size], text[start : start + 3 * size]
        if len(found) < SHOWN and len(ahead) == 3 * size and data.end not in ahead and data.unknown not in beginning:
            found.append(beginning)
    return found


def _continue(
    network: Any, prompt: npt.NDArray[np.int32], end: int | None, most: int, count: int, sampling: Sampling
) -> list[list[int]]:
    """What a network writes after a prompt, `count` times: the tokens before the first `end`, or `most`."""
    if missing := [name for name in ("begin", "step") if not callable(getattr(network, name, None))]:
        raise TiebreakError(
            f"the network has no `{missing[0]}`: it takes `begin` and `step` to write a text (docs/add-a-design.md)"
        )
    first = [int(token) for token in prompt] or [cast(int, end)]
    device = next(network.parameters()).device
    with torch.no_grad():
        state = network.begin(count)
        for token in first[:-1]:
            _, state = network.step(torch.full((count,), token, device=device), state)
        start = torch.full((count,), first[-1], device=device)
        rows, lengths = decoding.sample(network.step, state, start, most, sampling=sampling, end=end)
    return [row[:size] for row, size in zip(rows.tolist(), lengths.tolist(), strict=True)]
