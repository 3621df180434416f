"""Untrusted sound files as mono float32: every error names the file and what is wrong with it.

WAV (also RF64 and RIFX) and FLAC of any sample format and number of channels. Channels are averaged. No memory is
allocated because of a header alone: sound is read block by block, and what a header claims must be there. A FLAC file
whose encoder did not know its length, having streamed, is read to its end.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiebreak.errors import TiebreakError
from tiebreak.text import printable

SUFFIXES = (".wav", ".flac")
FORMATS = ("WAV", "WAVEX", "RF64", "FLAC")  # libsndfile's names; it reads many more, and goes by the content
RATES = (4_000, 384_000)  # samples a second: lowest and highest that make sense for speech
LONGEST_SECONDS = 600  # an utterance; a whole book in one file is a mistake
MOST_SAMPLES = 48_000 * LONGEST_SECONDS  # of each channel: 600 seconds at 48 kHz, 75 at 384 kHz
BLOCK = 1 << 18  # samples of all channels that are read at a time
UNKNOWN = (1 << 63) - 1  # libsndfile's number of samples where the header of a FLAC file leaves it open
IN_DS64 = (1 << 32) - 1  # the length of an RF64 file's sound where its chunk ds64 has it


class Sound(NamedTuple):
    """Mono samples [n] float32, and how many of them make a second."""

    samples: NDArray[np.float32]
    rate: int


def read_audio(path: Path) -> Sound:
    """The sound in a WAV or FLAC file; silence is sound, but no samples at all, or NaN, are errors."""
    try:
        import soundfile  # type: ignore[import-untyped]
    except ImportError:
        raise TiebreakError("reading sound needs the package soundfile: `pip install soundfile`") from None

    _check_file(path)
    try:
        with _opened(soundfile, path) as file:
            if file.format not in FORMATS or file.subtype.startswith("MPEG"):
                raise TiebreakError(f"{printable(path)}: {file.format_info}, not WAV or FLAC; convert it")
            rate, claimed = int(file.samplerate), int(file.frames)
            _check_header(path, rate, claimed)
            samples = _read(path, file, rate)
    except soundfile.SoundFileError as error:
        reason = str(getattr(error, "error_string", error)).strip().rstrip(".")
        raise TiebreakError(f"{printable(path)}: no sound that can be read ({printable(reason)})") from None
    if claimed == UNKNOWN:
        _check_header(path, rate, len(samples))
    elif len(samples) != claimed:
        raise TiebreakError(
            f"{printable(path)}: ends after {len(samples):,} of the {claimed:,} samples that its header claims; "
            "get it again"
        )
    wrong = np.flatnonzero(~np.isfinite(samples))
    if len(wrong):
        raise TiebreakError(f"{printable(path)}: sample {wrong[0]:,} is {samples[wrong[0]]} ({len(wrong):,} such)")
    return Sound(samples, rate)


def resample(samples: NDArray[np.float32], rate: int, to: int) -> NDArray[np.float32]:
    """The same sound with `to` samples a second; what is above half of it is filtered out."""
    if rate == to:
        return samples
    from scipy import signal  # a second to import: only where it is needed

    common = math.gcd(rate, to)
    resampled = signal.resample_poly(samples.astype(np.float64), to // common, rate // common)
    with np.errstate(over="ignore"):  # what becomes infinite is refused where features are made of it
        return np.asarray(resampled, np.float32)


def _opened(soundfile: Any, path: Path) -> Any:
    """The sound file; soundfile seeks after every block, which fails at an end that was not known before."""

    class Reader(soundfile.SoundFile):  # type: ignore[misc]
        def seekable(self) -> bool:
            return self.frames != UNKNOWN and bool(super().seekable())

    return Reader(path)


def _read(path: Path, file: Any, rate: int) -> NDArray[np.float32]:
    """All samples of an open file, channels averaged; more than an utterance has are an error, whatever was claimed."""
    blocks, count = [], 0
    frames = max(1, BLOCK // file.channels)
    while len(block := file.read(frames, dtype="float32", always_2d=True)):
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # a mean that is not a number is reported below, with its place
            blocks.append(block.mean(axis=1, dtype=np.float32) if block.shape[1] > 1 else block[:, 0])
        count += len(block)
        if count > min(rate * LONGEST_SECONDS, MOST_SAMPLES):
            raise TiebreakError(
                f"{printable(path)}: more than {min(LONGEST_SECONDS, MOST_SAMPLES / rate):g} seconds, the most that an "
                "utterance has: cut it, or resample it"
            )
    return np.concatenate(blocks) if blocks else np.zeros(0, np.float32)


def _check_header(path: Path, rate: int, claimed: int) -> None:
    if not RATES[0] <= rate <= RATES[1]:
        raise TiebreakError(f"{printable(path)}: {rate:,} samples a second; expected {RATES[0]:,} to {RATES[1]:,}")
    if claimed == 0:
        raise TiebreakError(f"{printable(path)}: a header and no sound; remove it, or record it again")
    if rate * LONGEST_SECONDS < claimed < UNKNOWN:
        raise TiebreakError(
            f"{printable(path)}: {claimed / rate:,.0f} seconds; an utterance has at most {LONGEST_SECONDS}: cut it"
        )
    if MOST_SAMPLES < claimed < UNKNOWN:
        raise TiebreakError(
            f"{printable(path)}: {claimed:,} samples; an utterance has at most {MOST_SAMPLES:,}: cut it, or resample it"
        )


def _check_file(path: Path) -> None:
    """Raise where there is no file, an empty one, neither WAV nor FLAC, or a WAV that claims more than there is."""
    try:
        if not path.is_file():
            raise TiebreakError(f"{printable(path)}: {'a folder, not a file' if path.is_dir() else 'no such file'}")
        size = path.stat().st_size
        if size == 0:
            raise TiebreakError(f"{printable(path)}: an empty file; remove it, or get it again")
        if not _is_wav_or_flac(path):
            raise TiebreakError(f"{printable(path)}: no sound that can be read: neither WAV nor FLAC; convert it")
        claimed, present = _claimed_by_wav(path, size)
    except OSError as error:
        raise TiebreakError(f"{printable(path)}: cannot be read: {error.strerror}") from None
    if claimed > present:
        raise TiebreakError(
            f"{printable(path)}: its header claims {claimed:,} bytes of sound and it has {present:,}; get it again"
        )


def _is_wav_or_flac(path: Path) -> bool:
    """By the first bytes: only what these formats begin with is given to a decoder at all."""
    with path.open("rb") as file:
        head = file.read(12)
        if head[:3] == b"ID3" and len(head) > 9:  # tags before the sound, which some programs put before FLAC
            size = sum((byte & 0x7F) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=True))
            file.seek(10 + size)
            head = file.read(12)
    return head[:4] == b"fLaC" or (head[:4] in (b"RIFF", b"RIFX", b"RF64") and head[8:] == b"WAVE")


def _claimed_by_wav(path: Path, size: int) -> tuple[int, int]:
    """How many bytes of sound a WAV file claims and has; libsndfile takes what is there without a word."""
    with path.open("rb") as file:
        form, wave = file.read(4), file.read(8)[4:]
        if form not in (b"RIFF", b"RIFX", b"RF64") or wave != b"WAVE":
            return 0, 0
        order = ">" if form == b"RIFX" else "<"
        long = 0  # what ds64 claims: RF64 is RIFF with lengths of 64 bits there
        while len(head := file.read(8)) == 8:
            kind, length = struct.unpack(f"{order}4sI", head)
            if kind == b"data":
                short = 0 if form == b"RF64" and length == IN_DS64 else length
                return max(short, long), size - file.tell()
            content = file.tell()
            if form == b"RF64" and kind == b"ds64" and len(claims := file.read(16)) == 16:
                long = struct.unpack("<QQ", claims)[1]  # after the length of the whole file
            file.seek(content + length + length % 2)
    return 0, 0
