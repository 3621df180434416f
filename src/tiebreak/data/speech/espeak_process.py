"""One fresh process of eSpeak NG: `python -m tiebreak.data.speech.espeak_process`, started by espeak.py.

In:  a JSON list of [text, voice, speed, pitch] on standard input.
Out: for every one, the number of samples as four bytes (little-endian) and the samples as int16.
A voice that does not exist ends it with code 2 and one line on standard error. Standard library only: it starts fast.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from pathlib import Path
from typing import Any

import espeakng_loader  # type: ignore[import-untyped]

SYNCHRONOUS = 2  # espeak_AUDIO_OUTPUT: hand the samples to a callback, play nothing
CHARACTERS = 1  # espeak_POSITION_TYPE
UTF_8 = 1
SPEED, PITCH = 1, 3  # espeak_PARAMETER
RATE = 22_050

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


def main() -> int:
    """Speak what standard input asks for."""
    jobs: list[tuple[str, str, int, int]] = json.load(sys.stdin)
    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(SYNCHRONOUS, 0, espeakng_loader.get_data_path().encode(), 0)
    if rate != RATE:
        return _fail(f"eSpeak NG speaks {rate} samples a second, not {RATE}")
    blocks: list[bytes] = []

    def collect(samples: int | None, count: int, _events: Any) -> int:
        if samples and count > 0:
            blocks.append(ctypes.string_at(samples, 2 * count))
        return 0

    callback = _Callback(collect)  # must live as long as the library may call it
    library.espeak_SetSynthCallback(callback)
    for text, voice, speed, pitch in jobs:
        blocks.clear()
        # For an unknown voice the library keeps the previous one; an unknown variant it ignores.
        if not _has_variant(voice) or library.espeak_SetVoiceByName(voice.encode()) != 0:
            return _fail(f"eSpeak NG has no voice {voice!r}")
        library.espeak_SetParameter(SPEED, speed, 0)
        library.espeak_SetParameter(PITCH, pitch, 0)
        data = text.encode() + b"\0"
        if library.espeak_Synth(data, len(data), 0, CHARACTERS, 0, UTF_8, None, None) != 0:
            return _fail(f"eSpeak NG cannot speak {text!r}")
        sound = b"".join(blocks)
        sys.stdout.buffer.write(struct.pack("<I", len(sound) // 2) + sound)
    return 0


def _has_variant(voice: str) -> bool:
    _, plus, variant = voice.partition("+")
    return not plus or Path(espeakng_loader.get_data_path(), "voices", "!v", variant).is_file()


def _fail(line: str) -> int:
    print(line, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
