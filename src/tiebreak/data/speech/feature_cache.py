"""Features on disk: made once by all cores, stored with a checksum, opened memory-mapped.

| file in CACHE/features | holds                                                                                  |
|------------------------|----------------------------------------------------------------------------------------|
| NAME-DIGEST.npy        | float16 [all frames, mels]: the features of all clips, one after the other              |
| NAME-DIGEST.json       | what they were made of and how, where each clip begins, the sha256 of the .npy,         |
|                        | what they were normalised by, and the sha256 of all that                               |
| NAME-DIGEST.lock       | nothing: held by the process that makes them                                           |

The digest is that of the recipe, so other data or another front end is another file. A cache that is damaged or not
ours is made again, and a note says so. Normalised features have mean 0 and variance 1 in every band over the frames of
the training clips.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from tiebreak import files
from tiebreak.data.checksums import file_checksum
from tiebreak.data.fetch import cache_dir
from tiebreak.data.speech import audio, espeak
from tiebreak.data.speech.espeak import Utterance
from tiebreak.data.speech.mel import FFT, HOP, MELS, log_mel
from tiebreak.errors import TiebreakError
from tiebreak.system import cores
from tiebreak.text import printable

Clip = Path | Utterance  # a sound file, or a text for eSpeak NG
Progress = Callable[[int, int], None]  # clips done, clips in all

VERSION = 2  # of the front end: another number makes all features again
DIGEST = b', "digest": "%s"}'  # ends the .json: the sha256 of what is before it
ROWS = 1 << 16  # frames that are normalised at a time


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that determines the features of a data set, whose `checksum` stands for its clips."""

    name: str
    checksum: str
    rate: int  # sound is resampled to it
    filter_rate: int  # and the mel filters are made for this
    normalised: bool
    mels: int = MELS
    fft: int = FFT
    hop: int = HOP
    version: int = VERSION

    @property
    def path(self) -> Path:
        """The file that stores the features."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()
        return files.inside(cache_dir() / "features", f"{self.name}-{digest[:16]}.npy", links=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bank:
    """The features of all clips: clip i is values[offsets[i]:offsets[i + 1]]."""

    values: NDArray[np.float16]  # [all frames, mels]
    offsets: NDArray[np.int64]  # [clips + 1]
    silent: tuple[int, ...] = ()  # clips without any sound
    mean: tuple[float, ...] = ()  # of every band over the training clips, which was subtracted; none: nothing was
    deviation: tuple[float, ...] = ()  # by which it was divided then
    notes: tuple[str, ...] = ()


class _Made(NamedTuple):
    values: NDArray[np.float32]
    silent: bool


def open_bank(
    recipe: Recipe, clips: Sequence[Clip], train: int, progress: Progress | None = None, workers: int | None = None
) -> Bank:
    """The features of the clips, from the cache or made now. The first `train` clips are those for training."""
    found = _opened(recipe, len(clips))
    if isinstance(found, Bank):
        return found
    try:
        recipe.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(recipe.path.with_suffix(".lock")):  # one process makes the features, the others wait for it
            again = _opened(recipe, len(clips))  # another process may have made it meanwhile
            if isinstance(again, Bank):
                return again
            _build(recipe, clips, train, progress, workers or cores())
    except OSError as error:
        raise TiebreakError(
            f"{recipe.path.parent}: cannot be written: {error.strerror or error}; make room, or set TIEBREAK_CACHE"
        ) from None
    made = _opened(recipe, len(clips))
    if not isinstance(made, Bank):
        raise TiebreakError(f"{recipe.path}: {made or 'vanished'} just after it was written; is the disk in order?")
    return replace(made, notes=(f"{recipe.path}: {found}; made again",)) if found else made


def _opened(recipe: Recipe, clips: int) -> Bank | str | None:
    """The bank in the cache, or what is wrong with it, or None where there is none."""
    path = recipe.path
    if not (path.is_file() and path.with_suffix(".json").is_file()):
        return None
    try:
        header = _read_description(path.with_suffix(".json"))
        if header is None:
            return "a damaged or older description of the features"
        if header["recipe"] != asdict(recipe):
            return "features of something else"
        if header["sha256"] != file_checksum(path):
            return "damaged features"
        values = np.load(path, mmap_mode="r", allow_pickle=False)
        offsets = np.array(header["offsets"], np.int64)
        silent = tuple(map(int, header["silent"]))
        mean, deviation = (tuple(map(float, header[name])) for name in ("mean", "deviation"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"damaged features ({printable(str(error))[:80]})"
    if values.dtype != np.float16 or values.shape != (offsets[-1], recipe.mels) or len(offsets) != clips + 1:
        return "features of another shape"
    if not len(mean) == len(deviation) == (recipe.mels if recipe.normalised else 0):
        return "features without what they were normalised by"
    return Bank(values=values, offsets=offsets, silent=silent, mean=mean, deviation=deviation)


def _build(recipe: Recipe, clips: Sequence[Clip], train: int, progress: Progress | None, workers: int) -> None:
    for left in recipe.path.parent.glob(f".{recipe.path.stem}.*.part"):  # of a process that was killed
        left.unlink()
    offsets, silent = [0], []
    total, squares = np.zeros(recipe.mels), np.zeros(recipe.mels)
    mean, deviation = np.zeros(0), np.zeros(0)
    with files.replacing(recipe.path) as part:
        with part.open("wb") as file:
            _write_header(file, 0, recipe.mels)
            for index, (values, is_silent) in enumerate(_make(recipe, clips, progress, workers)):
                file.write(values.astype(np.float16).tobytes())
                offsets.append(offsets[-1] + len(values))
                if is_silent:
                    silent.append(index)
                if index < train:
                    total += values.sum(axis=0, dtype=np.float64)
                    squares += np.square(values, dtype=np.float64).sum(axis=0)
            _write_header(file, offsets[-1], recipe.mels)
        if recipe.normalised:
            mean = total / offsets[train]
            deviation = np.sqrt(np.maximum(squares / offsets[train] - mean**2, 1e-6))
            _normalise(part, mean, deviation)
        checksum = file_checksum(part)
    header = {"recipe": asdict(recipe), "sha256": checksum, "silent": silent, "offsets": offsets}
    header |= {"mean": mean.tolist(), "deviation": deviation.tolist()}
    _write_description(recipe.path.with_suffix(".json"), header)


def _write_description(path: Path, content: dict[str, Any]) -> None:
    """JSON whose last key holds the sha256 of all bytes before it."""
    body = json.dumps(content).removesuffix("}").encode()
    files.write(path, body + DIGEST % hashlib.sha256(body).hexdigest().encode())


def _read_description(path: Path) -> dict[str, Any] | None:
    """The description of the features; None if a byte of it has changed."""
    content = path.read_bytes()
    body = content[: -len(DIGEST % bytes(64))]
    if content != body + DIGEST % hashlib.sha256(body).hexdigest().encode():
        return None
    return dict(json.loads(content))


def _write_header(file: IO[bytes], frames: int, mels: int) -> None:
    """The npy header, at the beginning: numpy leaves room in it for a first axis that grows."""
    file.seek(0)
    header: dict[str, Any] = {"descr": "<f2", "fortran_order": False, "shape": (frames, mels)}
    np.lib.format.write_array_header_1_0(file, header)


def _normalise(path: Path, mean: NDArray[np.float64], deviation: NDArray[np.float64]) -> None:
    values = np.load(path, mmap_mode="r+")
    for start in range(0, len(values), ROWS):
        values[start : start + ROWS] = (values[start : start + ROWS] - mean) / deviation
    values.flush()


def _make(recipe: Recipe, clips: Sequence[Clip], progress: Progress | None, workers: int) -> Iterator[_Made]:
    """The features of every clip in order. Threads do: what takes time is a process, or releases the interpreter."""
    chunks = [clips[start : start + espeak.CHUNK] for start in range(0, len(clips), espeak.CHUNK)]
    done = 0
    with ThreadPoolExecutor(workers) as pool:
        try:
            for made in pool.map(lambda chunk: _chunk_features(recipe, chunk), chunks):
                yield from made
                done += len(made)
                if progress is not None:
                    progress(done, len(clips))
        finally:
            pool.shutdown(cancel_futures=True)  # after an error the rest is not waited for


def _chunk_features(recipe: Recipe, chunk: Sequence[Clip]) -> list[_Made]:
    spoken = [clip for clip in chunk if isinstance(clip, Utterance)]
    sounds = iter(espeak.speak_chunk(spoken) if spoken else [])
    made = []
    for clip in chunk:
        sound = _as_sound(next(sounds)) if isinstance(clip, Utterance) else audio.read_audio(clip)
        samples = audio.resample(sound.samples, sound.rate, recipe.rate)
        try:
            values = log_mel(
                samples,
                recipe.rate,
                filter_rate=recipe.filter_rate,
                mels=recipe.mels,
                fft=recipe.fft,
                hop=recipe.hop,
            )
        except TiebreakError as error:
            raise TiebreakError(f"{printable(clip.text if isinstance(clip, Utterance) else clip)}: {error}") from None
        made.append(_Made(values, not samples.any()))
    return made


def _as_sound(spoken: NDArray[np.int16]) -> audio.Sound:
    return audio.Sound((spoken / 32768).astype(np.float32), espeak.RATE)
