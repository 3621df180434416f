"""Translation, letter by letter: cross-entropy of the next symbol; error rates of what the network writes by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tiebreak.data.pairs import characters, pair_data
from tiebreak.data.pairs.pair_data import PairData
from tiebreak.data.splits import SPLITS
from tiebreak.errors import TiebreakError
from tiebreak.models import decoding
from tiebreak.models.design import END, PADDING, START, Sentences
from tiebreak.study.registry import Scalar
from tiebreak.tasks import similarity
from tiebreak.tasks.interface import Arrays, Hypers, Network, Split, TrainedOn
from tiebreak.tasks.losses import masked_mean, smoothed_nll
from tiebreak.tasks.reply import Answer, AttentionWeights, Reply
from tiebreak.text import number_of

SHOWN_MAPS = 3  # sentences whose attention is kept
PLAIN = "abcdefghijklmnopqrstuvwxyz .!?"  # what `characters.normalise` leaves
MARKS = ("·", "<", ">", "�")  # how the four special symbols are written
LENGTHS = 8  # groups of source sentences by length, at most


@dataclass(frozen=True)
class Translate:
    """The task of the `translator` family: source and target symbols in, logits for the symbol after each out."""

    options: Mapping[str, Scalar] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    ordered: bool = False

    def load(self, name: str, data_dir: Path | None) -> PairData:
        """The data set `name`, checked."""
        return pair_data.load(name, data_dir)

    def vocabulary(self, data: PairData) -> dict[str, tuple[str, ...]]:
        """The symbols of both languages, without the four special ones, and what the languages are called."""
        return {"source": data.source_symbols, "target": data.target_symbols, "languages": data.languages}

    def with_options(self, options: Mapping[str, Scalar]) -> Translate:
        """The same with other options: how sentences are decoded is one."""
        whole = {"steps": 0, "drop_last": False} if options.get("decoding") == "whole" else {}
        return replace(self, options={**self.options, **options, **whole})

    def sizes(self, data: PairData, options: Mapping[str, Scalar]) -> dict[str, int]:
        """How many pairs each split has."""
        return data.sizes

    def shape(self, data: PairData) -> Sentences:
        """Symbols of either language, and the longest sentences, with a start or an end."""
        lengths = [max(len(pair[side]) for split in SPLITS for pair in data.pairs[split]) + 1 for side in (0, 1)]
        return Sentences(
            sources=len(data.source_symbols) + len(MARKS),
            targets=len(data.target_symbols) + len(MARKS),
            source_length=lengths[0],
            target_length=lengths[1],
        )

    def split(
        self, data: PairData, name: str, options: Mapping[str, Scalar], evaluation: Mapping[str, Scalar]
    ) -> Split:
        """source [N, S] with an end, inputs [N, T] with a start, targets [N, T] with an end, all padded."""
        shape, texts = self.shape(data), data.pairs[name]
        sources = _encoded([source for source, _ in texts], data.source_symbols, shape.source_length + 1)
        targets = _encoded([target for _, target in texts], data.target_symbols, shape.target_length + 1)
        inputs = targets[:, :-1]
        return {
            "source": sources[:, 1:],
            "inputs": inputs.masked_fill(inputs == END, PADDING),
            "targets": targets[:, 1:],
        }

    def loss(self, network: Network, batch: Split, weights: Tensor, hypers: Hypers) -> Tensor:
        """The mean of -log p(symbol) over the real symbols of the batch, with label smoothing where the run has it."""
        logits = network(batch["source"], batch["inputs"])
        each = smoothed_nll(logits, batch["targets"], hypers.get("label_smoothing"))
        return masked_mean(each, (batch["targets"] != PADDING).to(each.dtype), weights)

    def outcomes(self, network: Any, batch: Split) -> dict[str, Tensor]:
        """The sum of -log p over each sentence's symbols, how many these are, the sentence, and what was written."""
        logits = network(batch["source"], batch["inputs"])
        each = F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten(), reduction="none", ignore_index=PADDING)
        tokens, lengths = self._decode(network, batch["source"], batch["targets"].shape[1])
        return {
            "loss": each.view(batch["targets"].shape).sum(dim=1),
            "symbols": (batch["targets"] != PADDING).sum(dim=1),
            "targets": batch["targets"],
            "written": tokens,
            "length": lengths,
        }

    def score(self, outcomes: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, npt.NDArray[Any]]]:
        """Macro and corpus error, exact matches and the loss of a symbol; of each sentence error, loss and weights."""
        lengths = outcomes["length"].astype(int)
        if self.options.get("drop_last"):
            # As reported: whatever was emitted last is dropped. Where that was the end, it is no part of the length.
            lengths = np.minimum(lengths, outcomes["written"].shape[1] - 1)
        written = _texts(outcomes["written"], lengths)
        references = _texts(outcomes["targets"], outcomes["symbols"].astype(int) - 1)
        errors = similarity.error_rates(references, written)
        found = {
            "error": float(errors.mean()),
            "cer": similarity.cer(references, written),
            "exact": similarity.exact_match(references, written),
            "loss": float(outcomes["loss"].sum(dtype=np.float64) / outcomes["symbols"].sum(dtype=np.float64)),
        }
        exact = np.array([one == other for one, other in zip(references, written, strict=True)])
        kept = {"error": errors, "exact": exact, "loss": outcomes["loss"] / outcomes["symbols"]}
        kept |= {
            "weight_symbols": outcomes["symbols"],
            "weight_characters": np.array([len(text) for text in references]),
        }
        return found, {name: values.astype(np.float32) for name, values in kept.items()}

    def exhibits(
        self, network: nn.Module, data: PairData, options: Mapping[str, Scalar], examples: Sequence[int]
    ) -> dict[str, Arrays]:
        """Error by length; and, with test examples given, their translations and attention weights."""
        bound = self.with_options(options)
        split = bound.split(data, "test", options, {})
        shown: dict[str, Arrays] = {"curves": bound.by_length(network, split)}
        if not examples:
            return shown
        device = next(network.parameters()).device
        rows = split["source"][list(examples)].to(device)
        with torch.no_grad():
            tokens, lengths = bound._decode(network, rows, split["targets"].shape[1])
        texts = [data.pairs["test"][index] for index in examples]
        written = [_text(row[:size], data.target_symbols) for row, size in zip(tokens.tolist(), lengths, strict=True)]
        shown["samples"] = {
            "input": np.asarray([source for source, _ in texts]),
            "reference": np.asarray([target for _, target in texts]),
            "output": np.asarray(written),
            "heading": np.asarray([*data.languages, "translation"]),
        }
        maps: dict[str, Any] = {}
        for number in range(min(SHOWN_MAPS, len(rows))):
            attention = _attention(
                network, rows[number], tokens[number, : int(lengths[number])], bound.vocabulary(data)
            )
            if attention is not None:
                maps[f"weights_{number}"] = attention.weights
                maps[f"rows_{number}"], maps[f"columns_{number}"] = (
                    np.asarray(attention.rows),
                    np.asarray(attention.columns),
                )
                maps[f"title_{number}"] = np.asarray(f"{texts[number][0]} → {written[number]}")
        return {**shown, "attention": maps} if maps else shown

    def by_length(self, network: nn.Module, split: Split) -> Arrays:
        """The error of sentences by the length of their source, in groups of nearly equal size."""
        device = next(network.parameters()).device
        found: list[dict[str, npt.NDArray[Any]]] = []
        with torch.no_grad():
            for start in range(0, len(split["source"]), 500):
                batch = {name: values[start : start + 500].to(device) for name, values in split.items()}
                found.append({name: values.cpu().numpy() for name, values in self.outcomes(network, batch).items()})
        errors = self.score({name: np.concatenate([each[name] for each in found]) for name in found[0]})[1]["error"]
        sizes = (split["source"] != PADDING).sum(dim=1).numpy() - 1
        ends = np.unique(np.quantile(sizes, np.linspace(0, 1, LENGTHS + 1)[1:], method="nearest"))
        group = np.searchsorted(ends, sizes)
        return {
            "length_x": np.array([sizes[group == each].mean() for each in range(len(ends))]),
            "length_y": np.array([errors[group == each].mean() for each in range(len(ends))]),
            "length_n": np.bincount(group, minlength=len(ends)),
            "length_label": np.asarray(["characters of the source sentence", "test error"]),
            "length_title": np.asarray("Error by the length of the source"),
        }

    def answer(
        self, network: nn.Module, user_input: str, trained_on: TrainedOn, use_options: Mapping[str, Scalar]
    ) -> Reply:
        """The translation of a sentence; the note says how it was read and counts unknown characters."""
        assert isinstance(trained_on.shape, Sentences)
        text = _spelt(user_input, trained_on.vocabulary["source"])
        notes = [f"read as {text!r}"] if text != user_input else []
        if unknown := characters.unknown([text], trained_on.vocabulary["source"]):
            notes.append(f"{number_of(unknown, 'character')} not seen in training")
        if len(text) >= trained_on.shape.source_length:
            notes.append(f"longer than the {trained_on.shape.source_length - 1} characters of training")
        source = _encoded([text], trained_on.vocabulary["source"], len(text) + 2)[:, 1:]
        bound = self.with_options({**trained_on.options, "beam": use_options["beam"]})
        with torch.no_grad():
            tokens, lengths = bound._decode(network, source, trained_on.shape.target_length)
        written = tokens[0, : int(lengths[0])]
        attention = None
        if use_options["show_attention"]:
            attention = _attention(network, source[0], written, trained_on.vocabulary)
            notes += [] if attention is not None else ["this design has no attention to show"]
        return Reply(
            answers=[Answer(text=_text(written.tolist(), trained_on.vocabulary["target"]))],
            note="; ".join(notes),
            attention=attention,
        )

    def _decode(self, network: Any, source: Tensor, longest: int) -> tuple[Tensor, Tensor]:
        """What the network writes by itself: tokens [B, steps] and lengths [B]."""
        steps = int(self.options.get("steps", 0)) or longest
        start = torch.full_like(source[:, 0], START)
        width = int(self.options.get("beam", 1))
        if width == 1:
            return decoding.greedy(network.step, network.encode(source), start, END, steps)
        return decoding.beam(network.step, network.encode(source), start, END, steps, width)


def _encoded(texts: Sequence[str], symbols: Sequence[str], length: int) -> Tensor:
    return torch.tensor([characters.encode(text, symbols, length) for text in texts])


def _spelt(text: str, symbols: Sequence[str]) -> str:
    """The sentence in the spelling of the data: without accents and signs, where the data has none."""
    spelt = characters.normalise(text) if set(symbols) <= set(PLAIN) else characters.tidy(text)
    if not spelt:
        raise TiebreakError(f"{text!r}: nothing to translate; give a sentence")
    return spelt


def _texts(tokens: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> list[str]:
    """Symbols as characters, one each whatever they stand for: distances need no more."""
    rows = tokens.astype(np.uint32)
    return [row[:size].tobytes().decode("utf-32-le") for row, size in zip(rows, lengths, strict=True)]


def _text(tokens: Sequence[int], symbols: Sequence[str]) -> str:
    return "".join((*MARKS, *symbols)[token] for token in tokens)


def _attention(
    network: nn.Module, source: Tensor, written: Tensor, vocabulary: Mapping[str, tuple[str, ...]]
) -> AttentionWeights | None:
    """The attention weights of each symbol of one translation and of its end; None for a design without them."""
    start = written.new_full((1,), START)
    with torch.no_grad():
        weights = network.attention_weights(source[None], torch.cat([start, written])[None])  # type: ignore[operator]
    if weights is None:
        return None
    real = int((source != PADDING).sum())
    rows = [(*MARKS, *vocabulary["target"])[token] for token in (*written.tolist(), END)]
    columns = [(*MARKS, *vocabulary["source"])[token] for token in source[:real].tolist()]
    return AttentionWeights(
        weights=weights[0, :, :real].float().cpu().numpy(), rows=tuple(rows), columns=tuple(columns)
    )
