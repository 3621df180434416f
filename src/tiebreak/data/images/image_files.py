"""Untrusted PNG and JPEG files as arrays of bytes: all of one size, all grey or all RGB.

Grey stays grey, and everything else becomes RGB: palettes are looked up, transparency is dropped. One picture in
colour makes all of them RGB. Pictures are used as they are stored: the orientation tag of a camera is ignored.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tiebreak.data.npz import LIMIT_BYTES, check_expansion
from tiebreak.errors import TiebreakError
from tiebreak.files import check_regular
from tiebreak.text import printable

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIXES = (".png", ".jpg", ".jpeg")
GREY = ("1", "L")  # Pillow's modes: black and white, 8-bit grey
WIDE = ("I", "F")  # what its modes of more than 8 bits begin with


@dataclass(frozen=True, kw_only=True)
class Form:
    """What all pictures have in common."""

    width: int
    height: int
    grey: bool
    of_other_size: int = field(default=0, compare=False)  # pictures that must be resized

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one picture as an array."""
        return (self.height, self.width) if self.grey else (self.height, self.width, 3)


def survey(paths: Sequence[Path], limit: int = LIMIT_BYTES, resize: int = 0) -> Form:
    """The form of the pictures, from their headers.

    An error names the first of another size, unless all are to be resized to `resize` x `resize` pixels.
    """
    sizes, modes = [], set()
    for path in paths:
        with _opened(path) as picture:
            sizes.append(picture.size)
            modes.add(picture.mode)
    (width, height), count = Counter(sizes).most_common(1)[0]
    if resize:
        width = height = resize
        count = sizes.count((width, height))
    for path, size in zip(paths, sizes, strict=True) if not resize else ():
        if size != (width, height):
            raise TiebreakError(
                f"{printable(path)}: {size[0]}x{size[1]} pixels, but most images here have {width}x{height} "
                f"(of another size: {len(paths) - count:,} of {len(paths):,}); expected one size: make all one size, "
                f"or have them resized: options = {{ resize = {min(width, height)} }} in the study file; "
                "`tiebreak data check` tries it with --resize"
            )
    form = Form(width=width, height=height, grey=modes <= set(GREY), of_other_size=len(paths) - count)
    if (total := len(paths) * int(np.prod(form.shape))) > limit:
        raise TiebreakError(
            f"{printable(paths[0])}: {len(paths):,} images of {width}x{height} pixels take {total:,} bytes; "
            f"at most {limit:,} are read: make them smaller"
        )
    check_expansion(paths[0].parent, total, sum(path.stat().st_size for path in paths))
    return form


def read(paths: Sequence[Path], form: Form, *, resize: bool = False) -> NDArray[np.uint8]:
    """The pictures as one array [N, H, W] or [N, H, W, 3]; those of another size are refused, or resized."""
    images = np.empty((len(paths), *form.shape), np.uint8)
    for index, path in enumerate(paths):
        if resize:
            images[index], _ = read_resized(path, form)
            continue
        with _opened(path) as picture:
            pixels = np.asarray(_converted(picture, "L" if form.grey else "RGB"))
        if pixels.shape != form.shape:
            raise TiebreakError(f"{printable(path)}: changed while it was read; try again")
        images[index] = pixels
    return images


def read_resized(path: Path, form: Form) -> tuple[NDArray[np.uint8], str]:
    """One picture [H, W] or [H, W, 3] in the given form, and what had to be done to it, in words."""
    from PIL import Image

    with _opened(path) as picture:
        size, mode = picture.size, picture.mode
        converted = _converted(picture, "L" if form.grey else "RGB")
        if size != (form.width, form.height):
            converted = converted.resize((form.width, form.height), Image.Resampling.BILINEAR)
        pixels = np.array(converted)
    done = [
        f"resized from {size[0]}x{size[1]} to {form.width}x{form.height}" if size != (form.width, form.height) else "",
        "colours made grey" if form.grey and mode not in GREY else "",
    ]
    return pixels, ", ".join(filter(None, done))


def _converted(picture: Image, mode: str) -> Image:
    if "transparency" in picture.info:  # Pillow warns unless such a palette is looked up with its transparency
        picture = picture.convert("RGBA")
    return picture if picture.mode == mode else picture.convert(mode)


@contextmanager
def _opened(path: Path) -> Iterator[Image]:
    """The opened file, or one line that says what is wrong with it. Nothing but PNG and JPEG is ever decoded."""
    from PIL import Image, UnidentifiedImageError

    check_regular(path)
    bombs = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about camera metadata that Pillow does not know
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=("PNG", "JPEG")) as picture:
                if picture.mode.startswith(WIDE):
                    raise TiebreakError(f"{printable(path)}: more than 8 bits a pixel; save it with 8")
                yield picture
    except TiebreakError:
        raise
    except bombs:
        raise TiebreakError(
            f"{printable(path)}: claims more than {Image.MAX_IMAGE_PIXELS or 0:,} pixels and was not read"
        ) from None
    except UnidentifiedImageError:
        raise TiebreakError(f"{printable(path)}: not a PNG or JPEG image; remove or replace it") from None
    except Exception as error:  # Pillow raises a dozen kinds on bytes that make no sense
        if isinstance(error, OSError) and error.errno:
            raise TiebreakError(f"{printable(path)}: cannot be read: {error.strerror}") from None
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise TiebreakError(f"{printable(path)}: damaged image ({reason}); remove or replace it") from None
