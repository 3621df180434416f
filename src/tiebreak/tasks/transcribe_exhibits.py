"""What a report shows of a recogniser: its error by the length of clips, transcripts, and attention weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tiebreak.data.speech import alphabet
from tiebreak.data.speech.alphabet import END, START, SYMBOLS
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.tasks.interface import Arrays, Split

if TYPE_CHECKING:
    from tiebreak.tasks.transcribe import Transcribe

SHOWN_MAPS = 3  # utterances whose attention is kept
LENGTHS = 8  # groups of clips by length, at most
BATCH = 100


def by_length(task: Transcribe, network: nn.Module, split: Split, data: SpeechData) -> Arrays:
    """The character error rate of test clips by their length, in groups of nearly equal size."""
    found: list[dict[str, npt.NDArray[Any]]] = []
    with torch.no_grad():
        for start in range(0, len(split["features"]), BATCH):
            batch = _on(network, {name: values[start : start + BATCH] for name, values in split.items()})
            found.append({name: values.cpu().numpy() for name, values in task.outcomes(network, batch).items()})
    outcomes = {name: np.concatenate([each[name] for each in found]) for name in found[0]}
    seconds = data.lengths("test") * data.seconds_per_frame
    ends = np.unique(np.quantile(seconds, np.linspace(0, 1, LENGTHS + 1)[1:], method="nearest"))
    group = np.searchsorted(ends, seconds)
    rates = [
        task.score({name: values[group == each] for name, values in outcomes.items()})[0]["cer"]
        for each in range(len(ends))
    ]
    return {
        "length_x": np.array([seconds[group == each].mean() for each in range(len(ends))]),
        "length_y": np.array(rates),
        "length_n": np.bincount(group, minlength=len(ends)),
        "length_label": np.asarray(["seconds of the clip", "character error rate"]),
        "length_title": np.asarray("Error by the length of the clip"),
    }


def of_examples(
    task: Transcribe, network: nn.Module, split: Split, data: SpeechData, examples: Sequence[int]
) -> dict[str, Arrays]:
    """Transcripts of some test utterances, and maps of the first few."""
    chosen = _on(network, {name: values[list(examples)] for name, values in split.items()})
    with torch.no_grad():
        tokens, lengths = task.decode(network, chosen)
    written = [alphabet.decode(row) for row in tokens.tolist()]
    sizes = [int(data.lengths("test")[index]) for index in examples]
    names = [data.utterances["test"][index] for index in examples]
    clips = [f"{name}, {size * data.seconds_per_frame:.2f} s" for name, size in zip(names, sizes, strict=True)]
    # as the network is asked to write it: small letters, cut, # for what has no symbol
    references = [alphabet.decode(row) for row in split["targets"][list(examples)].tolist()]
    heading = "transcript (#: has no symbol)" if any("#" in text for text in references) else "transcript"
    shown: dict[str, Arrays] = {
        "samples": {
            "input": np.asarray(clips),
            "reference": np.asarray(references),
            "output": np.asarray(written),
            "heading": np.asarray(["utterance", heading, "recognised"]),
        }
    }
    maps: dict[str, Any] = {}
    for number in range(min(SHOWN_MAPS, len(examples))):
        row = {name: values[number : number + 1] for name, values in chosen.items()}
        text, sound = tokens[number, : int(lengths[number])], min(sizes[number], row["features"].shape[1])
        weights = _attention(network, row, text)
        places = -(-weights.shape[1] * sound // row["features"].shape[1])
        maps[f"weights_{number}"] = weights[:, :places]
        symbols = [SYMBOLS[token] for token in (*text.tolist(), END)]
        maps[f"rows_{number}"] = np.asarray(symbols[: len(weights)])
        maps[f"title_{number}"] = np.asarray(f"{clips[number]} → {written[number]}")
        maps[f"picture_{number}"] = row["features"][0, :sound].float().cpu().numpy().T
    return {**shown, "attention": maps}


def _attention(network: nn.Module, row: Split, text: Tensor) -> npt.NDArray[np.float32]:
    """Attention weights [letters, places] of one transcript, its end included unless it was cut off before."""
    inputs = torch.cat([text.new_full((1,), START), text])[: row["targets"].shape[1]]
    frames = (row["frames"],) if "frames" in row else ()
    with torch.no_grad():
        weights = network.attention_weights(row["features"], inputs[None], *frames)  # type: ignore[operator]
    return weights[0].float().cpu().numpy()  # type: ignore[no-any-return]


def _on(network: nn.Module, split: Split) -> Split:
    device = next(network.parameters()).device
    return {name: values.to(device) for name, values in split.items()}
