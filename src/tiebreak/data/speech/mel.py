"""The log-mel spectrogram of the speech reports.

    S[t, k] = |Σ_n w[n] x[160 t + n - 200] exp(-2πi k n / 400)|²     w[n] = (1 - cos(2πn / 400)) / 2, periodic Hann
    M[t, m] = Σ_k S[t, k] F[k, m]                                    F: triangles, slaney's scale and norm
    y = log10 max(M, 1e-10);  y = max(y, max y - 8);  (y + 4) / 4

x is continued by reflection at both ends. n samples give ⌊n/160⌋ frames: as in Whisper's front end, the last of the
1 + ⌊n/160⌋ centred frames is left out. (The 2,754 frames of the reports do not decide it: at 22.05 kHz they are
20 s, twice the longest clip, so no clip is cut either way and zeros follow.)
"""

from __future__ import annotations

import numbers
from functools import lru_cache

import numpy as np
import scipy.fft
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tiebreak.errors import TiebreakError

MELS, FFT, HOP = 80, 400, 160
FLOOR = 1e-10  # of a band's power, before the logarithm
DECADES = 8  # of power below the loudest place that are kept
HIGHEST_RATE = 1_000_000_000  # samples a second; far above any sound, and filters for it are still numbers

# Slaney's scale (Auditory Toolbox): linear to 1 kHz, 3 mels for 200 Hz, then 27 mels for every factor of 6.4.
LINEAR_HZ = 200 / 3
BREAK_HZ = 1000.0
BREAK_MEL = BREAK_HZ / LINEAR_HZ
LOG_STEP = np.log(6.4) / 27


def _to_mel(hertz: float) -> float:
    return hertz / LINEAR_HZ if hertz < BREAK_HZ else BREAK_MEL + float(np.log(hertz / BREAK_HZ)) / LOG_STEP


def _to_hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(mel < BREAK_MEL, mel * LINEAR_HZ, BREAK_HZ * np.exp(LOG_STEP * (mel - BREAK_MEL)))


@lru_cache(maxsize=8)
def mel_filters(rate: int, fft: int = FFT, mels: int = MELS) -> NDArray[np.float64]:
    """Triangular filters [fft // 2 + 1, mels] from 0 Hz to half the rate, each of area 1 (Hz)."""
    edges = _to_hertz(np.linspace(0.0, _to_mel(rate / 2), mels + 2))
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    bins = np.arange(fft // 2 + 1)[:, None] * (rate / fft)
    triangles = np.minimum((bins - low) / (centre - low), (high - bins) / (high - centre))
    filters: NDArray[np.float64] = np.maximum(triangles, 0.0) * (2.0 / (high - low))
    filters.flags.writeable = False  # shared by all callers
    return filters


@lru_cache(maxsize=8)
def _sparse_filters(rate: int, fft: int, mels: int) -> sparse.csr_array:
    """The filters [mels, bins] without their zeros: 40 times less work than a full product, and the same bits on every
    machine, where a BLAS library may share the work out among threads that also get in each other's way.
    """
    return sparse.csr_array(mel_filters(rate, fft, mels).T)


def log_mel(
    samples: ArrayLike,
    rate: int,
    *,
    filter_rate: int | None = None,
    mels: int = MELS,
    fft: int = FFT,
    hop: int = HOP,
) -> NDArray[np.float32]:
    """The features [frames, mels] of mono sound: floats, of which -1 to 1 is full scale.

    `filter_rate`: for which rate the filters are made, if another one.
    """
    filters_for = rate if filter_rate is None else filter_rate
    _check_rate("rate", rate)
    _check_rate("filter_rate", filters_for)
    for name, number in (("mels", mels), ("fft", fft), ("hop", hop)):
        if not isinstance(number, numbers.Integral) or int(number) < 1:
            raise TiebreakError(f"{name} is {number!r:.40}; give a whole number, 1 or more")
    sound = _sound(samples, max(fft // 2 + 1, hop))
    with np.errstate(over="ignore", invalid="ignore"):  # reported below, in one line
        padded = np.pad(sound.astype(np.float64), fft // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(padded, fft)[::hop][: len(sound) // hop]
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(fft) / fft)
        spectrum = scipy.fft.rfft(frames * window, axis=1)
        power = spectrum.real**2 + spectrum.imag**2
        energies = (_sparse_filters(filters_for, fft, mels) @ power.T).T
    if not np.isfinite(energies).all():
        raise TiebreakError(f"samples of up to {np.abs(sound).max():.3g} are too large; scale the sound to -1 to 1")
    bands = np.log10(np.maximum(energies, FLOOR))
    bands = np.maximum(bands, bands.max() - DECADES)
    return np.asarray((bands + 4) / 4, np.float32)


def _check_rate(name: str, rate: float) -> None:
    if not isinstance(rate, numbers.Real) or not 1 <= rate <= HIGHEST_RATE:  # NaN is neither
        raise TiebreakError(f"{name} is {rate!r:.40}; give samples a second, from 1 to {HIGHEST_RATE:,}")


def _sound(samples: ArrayLike, least: int) -> NDArray[np.floating]:
    """The samples as an array; raise where they are no row of at least so many finite floats."""
    try:
        sound = np.asarray(samples)
    except (TypeError, ValueError):
        raise TiebreakError("the sound is no row of numbers; give a list or an array of floats") from None
    if sound.ndim != 1:
        raise TiebreakError(f"sound of shape {sound.shape}; a spectrogram is made of one row of samples")
    if sound.dtype.kind in "iu":  # their full scale is not known
        raise TiebreakError(f"samples of type {sound.dtype}; give floats from -1 to 1 (16-bit sound: samples / 32768)")
    if sound.dtype.kind != "f":
        raise TiebreakError(f"samples of type {sound.dtype}; give floats from -1 to 1")
    if len(sound) < least:
        raise TiebreakError(f"too short: {len(sound)} samples of sound; a spectrogram needs {least} or more")
    if not np.isfinite(sound).all():
        raise TiebreakError("the sound has samples that are NaN or infinite")
    return sound
