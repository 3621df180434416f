"""CMU AN4: people of 1991 spelling names and dates, as 13 mel cepstra a frame, 100 frames a second.

| file           | keys                                                                          |
|----------------|-------------------------------------------------------------------------------|
| an4_mfcc13.npz | feats [frames, 13], offsets [N + 1], text [N], split [N] (train or test), utt [N] |

An `utt` such as an4_clstk/fash/an251-fash-b names its speaker. Speakers of test are not in training; a tenth of the
training utterances, of whole speakers, become validation. Address, sha256 and licence: `sources.SOURCES`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.fetch import find_source, joint_checksum, verify
from tiebreak.data.npz import ArraySpec, read_npz
from tiebreak.data.speech.feature_cache import Bank
from tiebreak.data.speech.speech_data import SpeechData
from tiebreak.data.splits import SPLITS, permutation
from tiebreak.errors import TiebreakError
from tiebreak.streams import stream

NAME = "an4"
RATE = 16_000
ARRAYS = {
    "feats": ArraySpec(ndim=(2,), kinds="f"),
    "offsets": ArraySpec(ndim=(1,), kinds="iu"),
    "text": ArraySpec(ndim=(1,), kinds="U"),
    "split": ArraySpec(ndim=(1,), kinds="U"),
    "utt": ArraySpec(ndim=(1,), kinds="U"),
}


def an4_checksum(data_dir: Path | None = None) -> str:
    """The sha256 of its file."""
    return joint_checksum(verify(NAME, data_dir))


def load_an4(data_dir: Path | None = None) -> SpeechData:
    """The data set an4, its features normalised by the training utterances."""
    checked = verify(NAME, data_dir)
    ((_, file),) = checked.items()
    arrays = _checked(file.path, read_npz(file.path, ARRAYS))
    members = _splits(file.path, arrays["split"], arrays["utt"])
    source = find_source(NAME)
    return SpeechData(
        name=NAME,
        texts={split: tuple(arrays["text"][members[split]].tolist()) for split in SPLITS},
        utterances={split: tuple(arrays["utt"][members[split]].tolist()) for split in SPLITS},
        ready=_bank(arrays["feats"], arrays["offsets"].astype(np.int64), members),
        rate=RATE,
        mels=arrays["feats"].shape[1],
        checksum=joint_checksum(checked),
        official=file.official,
        licence=source.licence,
        citation=source.citation,
        split_rule="test as published; validation: speakers with a tenth of the training utterances",
    )


def _checked(path: Path, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    feats, offsets = arrays["feats"], arrays["offsets"].astype(np.int64)
    count = len(arrays["text"])
    if not count == len(arrays["split"]) == len(arrays["utt"]) == len(offsets) - 1:
        raise TiebreakError(
            f"{path}: text has {count} entries, split {len(arrays['split'])}, utt {len(arrays['utt'])}, offsets "
            f"{len(offsets)}; expected N, N, N and N + 1"
        )
    if offsets[0] != 0 or offsets[-1] != len(feats) or (np.diff(offsets) < 1).any():
        raise TiebreakError(f"{path}: offsets: should rise from 0 to {len(feats):,}, the number of frames")
    if not np.isfinite(feats).all():
        raise TiebreakError(f"{path}: feats: {np.count_nonzero(~np.isfinite(feats)):,} are NaN or infinite")
    return arrays


def _splits(path: Path, split: NDArray[Any], names: NDArray[Any]) -> dict[str, NDArray[np.int64]]:
    """The utterances of each split, as ascending indices."""
    if wrong := set(split.tolist()) ^ {"train", "test"}:
        raise TiebreakError(f"{path}: split: expected train and test, each at least once; {sorted(wrong)[0]!r} differs")
    speakers = np.array([name.split("/")[-2] if name.count("/") else "" for name in names.tolist()])
    training = np.flatnonzero(split == "train")
    known = sorted(set(speakers[training].tolist()))
    if len(known) < 2:
        raise TiebreakError(f"{path}: utt: names fewer than two speakers; expected such as an4_clstk/fash/an251-fash-b")
    held_out: list[str] = []
    for place in permutation(len(known), stream(0, "split", NAME))[:-1]:
        held_out.append(known[place])
        if np.isin(speakers[training], held_out).sum() >= len(training) // 10:
            break
    is_val = np.isin(speakers[training], held_out)
    return {"train": training[~is_val], "val": training[is_val], "test": np.flatnonzero(split == "test")}


def _bank(feats: NDArray[Any], offsets: NDArray[np.int64], members: dict[str, NDArray[np.int64]]) -> Bank:
    order = np.concatenate([members[split] for split in SPLITS])
    parts = [feats[offsets[index] : offsets[index + 1]].astype(np.float32) for index in order]
    training = np.concatenate(parts[: len(members["train"])])
    mean, deviation = training.mean(axis=0, dtype=np.float64), training.std(axis=0, dtype=np.float64)
    values = (np.concatenate(parts) - mean) / np.maximum(deviation, 1e-3)
    return Bank(
        values=values.astype(np.float16), offsets=np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    )
