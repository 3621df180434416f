from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from support.real_data import need
from tiebreak.data.speech.mel import log_mel, mel_filters
from tiebreak.errors import TiebreakError


def to_hertz(mel: float) -> float:
    return mel * 200 / 3 if mel <= 15 else 1000 * 6.4 ** ((mel - 15) / 27)


def naive_filters(rate: int, fft: int, mels: int) -> NDArray[np.float64]:
    """Slaney's triangles, one number at a time."""
    top_hertz = rate / 2
    top = top_hertz * 3 / 200 if top_hertz <= 1000 else 15 + 27 * math.log(top_hertz / 1000, 6.4)
    edges = [to_hertz(top * place / (mels + 1)) for place in range(mels + 2)]
    filters = np.zeros((fft // 2 + 1, mels))
    for band in range(mels):
        low, centre, high = edges[band : band + 3]
        for place in range(fft // 2 + 1):
            hertz = place * rate / fft
            if low < hertz <= centre:
                filters[place, band] = (hertz - low) / (centre - low) * 2 / (high - low)
            elif centre < hertz < high:
                filters[place, band] = (high - hertz) / (high - centre) * 2 / (high - low)
    return filters


def finished(energies: NDArray[np.float64]) -> NDArray[np.float64]:
    logs = np.log10(np.maximum(energies, 1e-10))
    return np.asarray((np.maximum(logs, logs.max() - 8) + 4) / 4)


def naive_log_mel(samples: NDArray[np.floating], filter_rate: int) -> NDArray[np.float64]:
    """The definition by a direct Fourier sum, reflecting indices by hand."""
    count = len(samples)
    waves = np.exp(-2j * np.pi * np.outer(np.arange(400), np.arange(201)) / 400)
    power = []
    for frame in range(count // 160):
        places = [abs(160 * frame + n - 200) for n in range(400)]
        places = [2 * (count - 1) - place if place >= count else place for place in places]
        hann = [(1 - math.cos(2 * math.pi * n / 400)) / 2 for n in range(400)]
        power.append(np.abs((samples[places].astype(np.float64) * hann) @ waves) ** 2)
    return finished(np.array(power) @ naive_filters(filter_rate, 400, 80))


def torch_log_mel(samples: NDArray[np.floating], filter_rate: int) -> NDArray[np.float64]:
    """The same through torch.stft, as the reports computed it; the last frame is left out."""
    spectrum = torch.stft(
        torch.from_numpy(samples.astype(np.float64)),
        400,
        160,
        window=torch.hann_window(400, dtype=torch.float64),
        return_complex=True,
    )
    power = spectrum[:, :-1].abs().square().numpy().T
    return finished(power @ naive_filters(filter_rate, 400, 80))


def noise(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Noise whose loudness falls by six decades, so that the floor is reached."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(count) * np.logspace(0, -6, count)).astype(np.float32)


@pytest.mark.parametrize(("rate", "fft", "mels"), [(16_000, 400, 80), (22_050, 400, 80), (8_000, 256, 23)])
def test_filters_are_slaneys(rate: int, fft: int, mels: int) -> None:
    np.testing.assert_allclose(mel_filters(rate, fft, mels), naive_filters(rate, fft, mels), rtol=1e-9, atol=1e-15)


def test_filters_have_the_published_numbers() -> None:
    """Of 80 bands at 16 kHz the first five are 37.24 Hz apart and linear: the values can be worked out by hand."""
    filters = mel_filters(16_000, 400, 80)
    step = to_hertz((15 + 27 * math.log(8, 6.4)) / 81)
    assert step == pytest.approx(37.2392, abs=1e-4)
    assert filters[1, 0] == pytest.approx((2 * step - 40) / step / step, rel=1e-9)
    assert filters[1, 1] == pytest.approx((40 - step) / step / step, rel=1e-9)
    assert np.count_nonzero(filters[0]) == 0


def test_filters_are_shared_and_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        mel_filters(16_000)[0, 0] = 1


@pytest.mark.parametrize("count", [201, 320, 1599, 1600, 1601, 4000])
@pytest.mark.parametrize("filter_rate", [16_000, 22_050])
def test_features_are_the_definition(count: int, filter_rate: int) -> None:
    samples = noise(count)
    features = log_mel(samples, 22_050, filter_rate=filter_rate)
    assert features.dtype == np.float32
    assert features.shape == (count // 160, 80)
    np.testing.assert_allclose(features, naive_log_mel(samples, filter_rate), atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(201, 9000), st.integers(0, 99))
def test_features_are_those_of_torch(count: int, seed: int) -> None:
    samples = noise(count, seed)
    features = log_mel(samples, 22_050)
    assert len(features) == count // 160 == torch_log_mel(samples, 22_050).shape[0]
    np.testing.assert_allclose(features, torch_log_mel(samples, 22_050), atol=1e-5)


def test_features_of_real_speech() -> None:
    path = need("ljspeech/ljspeech_8_clips.npz") / "ljspeech" / "ljspeech_8_clips.npz"
    with np.load(path, allow_pickle=False) as clips:
        audio, offsets, rate = clips["audio"], clips["offsets"], int(clips["rate"])
    for start, end in pairwise(offsets.tolist()):
        samples = (audio[start:end] / 32768).astype(np.float32)
        assert len(samples) // 160 <= 2754
        for filter_rate in (16_000, rate):
            features = log_mel(samples, rate, filter_rate=filter_rate)
            np.testing.assert_allclose(features, torch_log_mel(samples, filter_rate), atol=1e-5)
            assert features.max() - features.min() <= 2 + 1e-6


def test_silence_is_the_floor_everywhere() -> None:
    np.testing.assert_array_equal(log_mel(np.zeros(800, np.float32), 16_000), np.full((5, 80), -1.5, np.float32))


@pytest.mark.parametrize(
    ("samples", "line"),
    [
        (np.zeros(200, np.float32), "too short: 200 samples of sound; a spectrogram needs 201 or more"),
        (np.zeros((800, 2), np.float32), "made of one row of samples"),
        (np.full(800, np.nan, np.float32), "NaN or infinite"),
        (np.zeros(800, np.int16), "samples of type int16; give floats from -1 to 1 .16-bit sound: samples / 32768."),
        (np.zeros(800, np.uint8), "samples of type uint8; give floats"),
        ([0] * 800, "samples of type int64; give floats"),
        (np.zeros(800, bool), "samples of type bool; give floats"),
        (np.zeros(800, np.complex64), "samples of type complex64; give floats"),
        (np.zeros(800, object), "samples of type object; give floats"),
        (np.full(800, "0.5"), "samples of type <U3; give floats"),
        ([[0.0], [0.0, 0.0]], "the sound is no row of numbers; give a list or an array of floats"),
        (0.5, r"sound of shape \(\); a spectrogram is made of one row of samples"),
        (np.full(800, 1e300), r"samples of up to 1e\+300 are too large; scale the sound to -1 to 1"),
        (np.tile([1e308, -1e308], 400), r"samples of up to 1e\+308 are too large"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_sound_without_features_is_refused(samples: Any, line: str) -> None:
    with pytest.raises(TiebreakError, match=line) as caught:
        log_mel(samples, 16_000)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["rate", "filter_rate"])
@pytest.mark.parametrize(
    "value", [0, -16_000, math.nan, math.inf, -math.inf, 0.5, pytest.param(10**400, id="huge"), "16000"]
)
@pytest.mark.filterwarnings("error")
def test_rates_that_are_none_are_refused(name: str, value: Any) -> None:
    rates = {"rate": 16_000, name: value}
    with pytest.raises(TiebreakError, match=f"^{name} is .*; give samples a second, from 1 to 1,000,000,000$"):
        log_mel(noise(800), **rates)


@pytest.mark.parametrize("name", ["mels", "fft", "hop"])
@pytest.mark.parametrize("value", [0, -1, 2.5, math.nan, "80"])
def test_sizes_below_one_are_refused(name: str, value: Any) -> None:
    with pytest.raises(TiebreakError, match=f"^{name} is .*; give a whole number, 1 or more$"):
        log_mel(noise(800), 16_000, **{name: value})


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_of_any_width_and_lists_of_them_are_the_same_sound(kind: type[np.floating]) -> None:
    samples = noise(800).astype(kind)
    features = log_mel(samples, 16_000)
    np.testing.assert_array_equal(log_mel(samples.astype(np.float64), 16_000), features)
    np.testing.assert_array_equal(log_mel(samples.tolist(), 16_000), features)
    np.testing.assert_array_equal(log_mel(samples, np.int64(16_000), hop=np.int32(160)), features)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error")
def test_the_loudest_float32_has_features() -> None:
    assert np.isfinite(log_mel(np.full(800, np.finfo(np.float32).max), 16_000)).all()
