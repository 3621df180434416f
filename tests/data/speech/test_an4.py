from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.real_data import need
from tiebreak.data.speech.speech_sets import checksum, load
from tiebreak.errors import TiebreakError

pytestmark = pytest.mark.usefixtures("empty_cache")


def arrays(**changes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Ten speakers of three utterances for training, two for testing; utterance i has i + 1 frames."""
    people = [f"an4_clstk/s{index}" for index in range(10)] + ["an4test_clstk/t0", "an4test_clstk/t1"]
    count = 3 * len(people)
    offsets = np.concatenate([[0], np.cumsum(np.arange(1, count + 1))])
    made: dict[str, NDArray[Any]] = {
        "feats": np.random.default_rng(0).normal(5, 3, (int(offsets[-1]), 13)).astype(np.float16),
        "offsets": offsets,
        "text": np.array([f"TEXT {index}" for index in range(count)]),
        "split": np.array(["train"] * 30 + ["test"] * 6),
        "utt": np.array([f"{person}/u{index}" for person in people for index in range(3)]),
    }
    return made | changes


def write(folder: Path, made: dict[str, NDArray[Any]]) -> Path:
    np.savez(folder / "an4_mfcc13.npz", allow_pickle=False, **made)
    return folder


def test_validation_is_whole_speakers_and_features_follow_their_utterances(tmp_path: Path) -> None:
    made = arrays()
    data = load("an4", write(tmp_path, made))
    assert data.sizes == {"train": 27, "val": 3, "test": 6}
    assert len({name.split("/")[1] for name in data.utterances["val"]}) == 1
    assert not {name.split("/")[1] for name in data.utterances["val"]} & {
        name.split("/")[1] for name in data.utterances["train"]
    }
    for split in data.sizes:
        for index, text in enumerate(data.texts[split]):
            assert data.features(split, index).shape == (int(text.split()[1]) + 1, 13)
    training = data.bank.values[: data.lengths("train").sum()].astype(np.float64)
    np.testing.assert_allclose(training.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(training.std(axis=0), 1, atol=1e-3)
    assert (data.mels, data.seconds_per_frame, data.official, data.synthetic) == (13, 0.01, False, False)
    assert data.checksum == checksum("an4", tmp_path)
    with pytest.raises(TiebreakError, match="an4 comes as features: its filters cannot be changed"):
        data.with_filters(16_000)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"text": np.array(["a"])}, "text has 1 entries, split 36, utt 36, offsets 37; expected N, N, N and N"),
        ({"offsets": np.arange(37)}, "offsets: should rise from 0 to 666, the number of frames"),
        ({"feats": np.full((666, 13), np.nan, np.float16)}, "feats: 8,658 are NaN or infinite"),
        ({"split": np.array(["train"] * 36)}, "split: expected train and test, each at least once; 'test' differs"),
        ({"utt": np.array(["alone"] * 36)}, "utt: names fewer than two speakers"),
        ({"feats": np.zeros(666, np.float16)}, "feats: has shape"),
    ],
)
def test_a_file_that_makes_no_sense_is_one_clear_line(
    tmp_path: Path, changes: dict[str, NDArray[Any]], line: str
) -> None:
    write(tmp_path, arrays(**changes))
    with pytest.raises(TiebreakError) as caught:
        load("an4", tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'an4_mfcc13.npz'}: {line}")


def test_the_real_corpus() -> None:
    data = load("an4", need("an4"))
    assert data.sizes == {"train": 843, "val": 105, "test": 130}
    assert (data.official, data.longest) == (True, 639)
    assert not any("become #" in note for note in data.notes)
    assert "free for any purpose" in data.licence
