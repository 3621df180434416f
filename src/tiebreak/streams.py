"""Named random streams: every random number of training, data and evaluation comes from `stream(seed, purpose, ...)`.

Monte-Carlo statistics and probes (such as whether a design depends on its input) have fixed seeds of their own.

A stream is named by what it is for, never by when it is drawn, so a run's numbers do not depend on the runs
trained with it or before it, or on whether it was interrupted. The arm is not part of the name: seed i gives every
arm the same data order and the same draws, which is what pairs runs by seed.
"""

from __future__ import annotations

import hashlib

KEY_BITS = 63  # fits a signed 64-bit integer, the widest seed that every generator accepts


def stream(seed: int, purpose: str, *identity: str | int) -> int:
    """The key of the stream for `purpose` under `seed`; `identity` tells apart streams of one purpose.

    >>> stream(0, "order", 1) == stream(0, "order", 1)
    True
    >>> stream(0, "order", 1) == stream(0, "order", 2)
    False
    """
    name = "\x1f".join([str(seed), purpose, *(f"{type(part).__name__}:{part}" for part in identity)])
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> (64 - KEY_BITS)
