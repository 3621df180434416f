from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tiebreak.data.speech.audio import LONGEST_SECONDS, read_audio, resample
from tiebreak.errors import TiebreakError

soundfile = pytest.importorskip("soundfile")


def tone(count: int, rate: int, hertz: float = 440.0) -> NDArray[np.float32]:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(count) / rate)).astype(np.float32)


def saved(path: Path, samples: NDArray[np.floating], rate: int = 22_050, subtype: str | None = None) -> Path:
    soundfile.write(path, samples, rate, subtype=subtype)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(TiebreakError) as caught:
        read_audio(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert line.isprintable()
    return line.removeprefix(f"{path}: ")


@pytest.mark.parametrize("name", ["x.wav", "x.flac"])
@pytest.mark.parametrize("rate", [8_000, 22_050, 96_000])
def test_reads_what_was_written(tmp_path: Path, name: str, rate: int) -> None:
    samples = tone(5000, rate)
    read, found = read_audio(saved(tmp_path / name, samples, rate))
    assert (found, len(read)) == (rate, 5000)
    assert read.dtype == np.float32
    np.testing.assert_allclose(read, samples, atol=1e-4)


@pytest.mark.parametrize(("subtype", "tolerance"), [("PCM_U8", 0.01), ("PCM_24", 1e-6), ("FLOAT", 0), ("DOUBLE", 0)])
def test_sample_formats(tmp_path: Path, subtype: str, tolerance: float) -> None:
    samples = tone(3000, 16_000)
    read, _ = read_audio(saved(tmp_path / "x.wav", samples, 16_000, subtype))
    np.testing.assert_allclose(read, samples, atol=tolerance)


def test_channels_are_averaged(tmp_path: Path) -> None:
    left, right = tone(3000, 16_000), tone(3000, 16_000, 600.0)
    read, _ = read_audio(saved(tmp_path / "x.wav", np.stack([left, right], axis=1), 16_000, "FLOAT"))
    np.testing.assert_allclose(read, (left + right) / 2, atol=1e-7)


def test_a_sound_longer_than_a_block_is_read_whole(tmp_path: Path) -> None:
    samples = tone((1 << 18) + 77, 22_050)
    np.testing.assert_allclose(read_audio(saved(tmp_path / "x.wav", samples)).samples, samples, atol=1e-4)


def test_silence_is_sound(tmp_path: Path) -> None:
    assert not read_audio(saved(tmp_path / "x.wav", np.zeros(3000))).samples.any()


def test_no_file_and_an_empty_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "x.wav").startswith("no such file")
    assert refusal(tmp_path).startswith("a folder, not a file")
    (tmp_path / "x.wav").touch()
    assert refusal(tmp_path / "x.wav").startswith("an empty file")


def test_a_header_and_no_sound(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.wav", np.zeros(0))
    assert refusal(path).startswith("a header and no sound")


def test_a_header_that_claims_two_gigabytes(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.wav", tone(3000, 22_050), subtype="PCM_16")
    content = bytearray(path.read_bytes())
    place = content.index(b"data") + 4
    content[place : place + 4] = struct.pack("<I", 2_000_000_000)
    path.write_bytes(content)
    assert refusal(path).startswith("its header claims 2,000,000,000 bytes of sound and it has 6,000")


def test_an_rf64_header_that_claims_terabytes(tmp_path: Path) -> None:
    path, samples = tmp_path / "x.wav", tone(3000, 22_050)
    soundfile.write(path, samples, 22_050, format="RF64", subtype="PCM_16")
    np.testing.assert_allclose(read_audio(path).samples, samples, atol=1e-4)
    content = bytearray(path.read_bytes())
    place = content.index(b"ds64") + 16
    assert struct.unpack("<Q", content[place : place + 8]) == (6000,)
    content[place : place + 8] = struct.pack("<Q", 1 << 42)
    path.write_bytes(content)
    assert refusal(path).startswith("its header claims 4,398,046,511,104 bytes of sound and it has 6,000")


@pytest.mark.parametrize(("kind", "endian"), [("WAV", "LITTLE"), ("WAV", "BIG"), ("WAVEX", "LITTLE"), ("RF64", "FILE")])
def test_a_wav_of_any_kind_that_ends_early(tmp_path: Path, kind: str, endian: str) -> None:
    path = tmp_path / "x.wav"
    soundfile.write(path, tone(3000, 22_050), 22_050, format=kind, subtype="PCM_16", endian=endian)
    assert len(read_audio(path).samples) == 3000
    path.write_bytes(path.read_bytes()[:-1000])
    assert refusal(path).startswith("its header claims 6,000 bytes of sound and it has 5,000")


@pytest.mark.parametrize("name", ["x.wav", "x.flac"])
def test_a_file_that_ends_early(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path / name, np.random.default_rng(0).uniform(-1, 1, 30_000))
    path.write_bytes(path.read_bytes()[:20_000])
    line = refusal(path)
    assert "get it again" in line or "no sound that can be read" in line


def test_a_flac_header_that_claims_hours_takes_no_memory(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.flac", tone(3000, 22_050))
    content = bytearray(path.read_bytes())
    content[21] |= 0x0F  # STREAMINFO: the 36 bits of the number of samples begin in the middle of this byte
    content[22:26] = b"\xff\xff\xff\xff"
    path.write_bytes(content)
    assert refusal(path).startswith(f"{((1 << 36) - 1) / 22_050:,.0f} seconds")


def streamed(path: Path, samples: NDArray[np.floating], rate: int) -> Path:
    """A FLAC file as of an encoder that cannot go back to its header: 0 samples, which means unknown."""
    content = bytearray(saved(path, samples, rate).read_bytes())
    content[21] &= 0xF0
    content[22:26] = bytes(4)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("count", [1, 3000, (1 << 18) - 1, 1 << 18, (1 << 18) + 1])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_flac_file_of_unknown_length_is_read_to_its_end(tmp_path: Path, count: int, channels: int) -> None:
    samples = np.stack([tone(count, 16_000)] * channels, axis=1)
    expected = read_audio(saved(tmp_path / "known.flac", samples, 16_000))
    read, rate = read_audio(streamed(tmp_path / "x.flac", samples, 16_000))
    assert rate == 16_000
    np.testing.assert_array_equal(read, expected.samples)


def test_a_flac_file_of_unknown_length_that_is_cut_or_too_long(tmp_path: Path) -> None:
    path = streamed(tmp_path / "x.flac", np.random.default_rng(0).uniform(-1, 1, 30_000), 16_000)
    path.write_bytes(path.read_bytes()[:20_000])
    assert refusal(path).startswith("no sound that can be read (")
    limit = 4_000 * LONGEST_SECONDS
    assert len(read_audio(streamed(path, np.zeros(limit), 4_000)).samples) == limit
    assert refusal(streamed(path, np.zeros(limit + 1), 4_000)).startswith(
        f"more than {LONGEST_SECONDS} seconds, the most that an utterance has: cut it"
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("left", "right", "mean"), [(3e38, 3e38, "inf"), (-3e38, -3e38, "-inf"), (np.inf, -np.inf, "nan")]
)
def test_channels_without_a_mean_are_one_line_and_no_warning(
    tmp_path: Path, left: float, right: float, mean: str
) -> None:
    samples = np.zeros((3000, 2), np.float32)
    samples[1234] = left, right
    assert refusal(saved(tmp_path / "x.wav", samples, subtype="FLOAT")).startswith(f"sample 1,234 is {mean} (1 such)")


@pytest.mark.filterwarnings("error")
def test_resampling_the_loudest_sound_gives_no_warning() -> None:
    samples = np.tile(np.repeat(np.array([3.4e38, -3.4e38], np.float32), 50), 40)
    assert np.isinf(resample(samples, 22_050, 16_000)).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_samples_that_are_no_numbers(tmp_path: Path, value: float) -> None:
    samples = tone(3000, 22_050)
    samples[[1234, 2000]] = value
    assert refusal(saved(tmp_path / "x.wav", samples, subtype="FLOAT")).startswith(f"sample 1,234 is {value} (2 such)")


def test_a_rate_that_is_not_for_speech(tmp_path: Path) -> None:
    assert refusal(saved(tmp_path / "x.wav", tone(3000, 22_050), 10)).startswith("10 samples a second")


@given(st.binary(min_size=1, max_size=200), st.booleans())
def test_bytes_that_are_no_sound_are_one_clear_line(content: bytes, riff: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.wav"
        path.write_bytes((b"RIFF\x40\0\0\0WAVE" if riff else b"") + content)
        with pytest.raises(TiebreakError) as caught:
            read_audio(path)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 96_000])
def test_resampling_keeps_a_tone(rate: int) -> None:
    resampled = resample(tone(rate, rate), rate, 16_000)
    assert resampled.dtype == np.float32
    assert len(resampled) == 16_000
    np.testing.assert_allclose(resampled[400:-400], tone(16_000, 16_000)[400:-400], atol=5e-3)


def test_resampling_removes_what_cannot_be_heard_at_the_lower_rate() -> None:
    assert np.abs(resample(tone(96_000, 96_000, 20_000.0), 96_000, 16_000)[400:-400]).max() < 1e-2
    samples = tone(100, 16_000)
    assert resample(samples, 16_000, 16_000) is samples


@pytest.mark.parametrize(
    ("kind", "subtype"),
    [("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS"), ("AIFF", "PCM_16"), ("AU", "PCM_16"), ("CAF", "PCM_16")],
)
@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_other_formats_under_these_names_are_refused(tmp_path: Path, kind: str, subtype: str, suffix: str) -> None:
    if kind not in soundfile.available_formats():
        pytest.skip(f"libsndfile without {kind}")
    path = tmp_path / f"x{suffix}"
    soundfile.write(path, np.zeros(16_000), 16_000, subtype, format=kind)
    assert "WAV" in refusal(path)


def test_flac_behind_tags_is_flac(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "x.flac", np.zeros(100), 16_000)
    plain = (tmp_path / "x.flac").read_bytes()
    (tmp_path / "x.flac").write_bytes(b"ID3\x04\x00\x00\x00\x00\x00\x14" + bytes(20) + plain)
    assert len(read_audio(tmp_path / "x.flac").samples) == 100
