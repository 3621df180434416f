from __future__ import annotations

import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tiebreak.data.images.image_files import Form, read, survey
from tiebreak.errors import TiebreakError

GREY = np.arange(20, dtype=np.uint8).reshape(4, 5) * 12
COLOUR = np.stack([GREY, 255 - GREY, GREY // 2], axis=2)


def save(path: Path, pixels: Any = GREY, mode: str | None = None, **options: Any) -> Path:
    picture = Image.fromarray(pixels)
    (picture.convert(mode) if mode else picture).save(path, **options)
    return path


def png_that_claims(path: Path, width: int, height: int) -> Path:
    """A PNG of 57 bytes whose header claims a size."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")))
    return path


def refusal(paths: list[Path], **options: int) -> str:
    with pytest.raises(TiebreakError) as caught:
        read(paths, survey(paths, **options))
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_grey_stays_grey(tmp_path: Path) -> None:
    paths = [save(tmp_path / "a.png"), save(tmp_path / "b.png", 255 - GREY)]
    form = survey(paths)
    assert form == Form(width=5, height=4, grey=True)
    np.testing.assert_array_equal(read(paths, form), np.stack([GREY, 255 - GREY]), strict=True)


def test_black_and_white_is_grey(tmp_path: Path) -> None:
    paths = [save(tmp_path / "a.png", (GREY > 100).astype(np.uint8) * 255, "1")]
    form = survey(paths)
    assert form.grey
    np.testing.assert_array_equal(read(paths, form)[0], (GREY > 100) * 255)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "LA", "CMYK"])
def test_everything_else_becomes_rgb(tmp_path: Path, mode: str) -> None:
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    save(path, COLOUR, mode)
    form = survey([path])
    assert form == Form(width=5, height=4, grey=False)
    images = read([path], form)
    assert images.shape == (1, 4, 5, 3)
    assert images.dtype == np.uint8
    if mode in ("RGB", "RGBA"):
        np.testing.assert_array_equal(images[0], COLOUR)


def test_one_picture_in_colour_makes_all_rgb(tmp_path: Path) -> None:
    paths = [save(tmp_path / "a.png"), save(tmp_path / "b.png", COLOUR)]
    images = read(paths, survey(paths))
    np.testing.assert_array_equal(images, np.stack([np.stack([GREY] * 3, axis=2), COLOUR]), strict=True)


def test_a_transparent_palette_is_looked_up(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", COLOUR, "P", transparency=bytes(range(256)))
    with warnings.catch_warnings(action="error"):
        assert read([path], survey([path])).shape == (1, 4, 5, 3)
    grey = save(tmp_path / "b.png", GREY, transparency=0)  # grey with one level marked as transparent
    np.testing.assert_array_equal(read([grey], survey([grey]))[0], GREY)


def test_jpeg_and_upper_case(tmp_path: Path) -> None:
    flat = np.full((8, 8), 77, np.uint8)
    path = save(tmp_path / "a.JPEG", flat)
    np.testing.assert_array_equal(read([path], survey([path]))[0], flat)


def test_another_size_is_named_and_counted(tmp_path: Path) -> None:
    odd = [save(tmp_path / f"{name}.png", GREY[:, :3]) for name in "ac"]
    even = [save(tmp_path / f"{name}.png") for name in "bdef"]
    line = refusal(sorted(odd + even))
    assert all(part in line for part in (f"{odd[0]}: 3x4 pixels", "5x4", "2 of 6", "resize = 4"))


def test_more_than_the_memory_allows(tmp_path: Path) -> None:
    paths = [save(tmp_path / "a.png")] * 10
    assert refusal(paths, limit=199).startswith(f"{paths[0]}: 10 images of 5x4 pixels take 200 bytes")
    assert survey(paths, limit=200).grey


@pytest.mark.parametrize("side", [12_000, 60_000])  # above Pillow's limit it warns, above twice that it refuses
def test_a_few_bytes_that_claim_gigabytes(tmp_path: Path, side: int) -> None:
    path = png_that_claims(tmp_path / "bomb.png", side, side)
    assert refusal([path]).startswith(f"{path}: claims more than 89,478,485 pixels and was not read")


def test_not_an_image(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    for content in (b"", b"hello", b"\x89PNG\r\n\x1a\n", b"GIF89a" + bytes(50)):
        path.write_bytes(content)
        assert refusal([path]).startswith(f"{path}: ")
    Image.fromarray(GREY).save(path, format="BMP")  # Pillow could read it, but only PNG and JPEG are asked for
    assert refusal([path]).startswith(f"{path}: not a PNG or JPEG image")


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_truncated(tmp_path: Path, suffix: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (60, 60)).astype(np.uint8)
    path = save(tmp_path / f"a.{suffix}", pixels)
    path.write_bytes(path.read_bytes()[:1200])
    line = refusal([path])
    assert line.startswith(f"{path}: damaged image (")
    assert "truncated" in line


def test_damage_anywhere_is_refused_or_harmless(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", np.random.default_rng(0).integers(0, 256, (9, 9)).astype(np.uint8))
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        try:
            read([path], survey([path]))
        except TiebreakError as error:
            assert str(error).startswith(f"{path}: ")  # noqa: PT017


def test_sixteen_bits_are_not_cut_down_silently(tmp_path: Path) -> None:
    path = save(tmp_path / "a.png", GREY.astype(np.uint16) * 257)
    assert refusal([path]).startswith(f"{path}: more than 8 bits a pixel")


def test_a_file_that_is_not_there_or_changes(tmp_path: Path) -> None:
    assert refusal([tmp_path / "a.png"]).startswith(f"{tmp_path / 'a.png'}: cannot be read: No such file or directory")
    path = save(tmp_path / "b.png")
    with pytest.raises(TiebreakError, match="changed while it was read"):
        read([path], Form(width=9, height=9, grey=True))


def test_pillow_is_imported_only_when_it_is_needed() -> None:
    code = "import sys, tiebreak.data.images.image_data; print('PIL' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
