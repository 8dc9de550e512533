"""HTTP compression in both directions: gzip, and deflate in its zlib form (RFC 9110, content codings).

A compressed body is inflated when it is complete (inflating.py), and never beyond the limit of a plain one.
"""

import zlib
from collections.abc import Sequence
from typing import Any

_WINDOW_BITS = {b"gzip": 31, b"x-gzip": 31, b"deflate": 15}
_CODINGS = (b"gzip", b"deflate")

WORTH_BYTES = 1024
"""Shorter answers are sent uncompressed: they fit a packet anyway."""

_LEVEL = 1
"""Tensors compress little better at higher levels, and much slower."""


class BadCompression(Exception):  # noqa: N818 - an answer to the client, not a failure of ours
    """A body cannot be decompressed; the message is for its sender."""


def window_bits(content_encoding: bytes) -> int | None:
    """Return zlib's window bits for a Content-Encoding, None for none; raises BadCompression for an unknown one."""
    coding = content_encoding.strip().lower()
    if coding in (b"", b"identity"):
        return None
    bits = _WINDOW_BITS.get(coding)
    if bits is None:
        found = coding.decode("latin-1")[:50]
        raise BadCompression(f"Content-Encoding '{found}' is not supported; send the body as gzip, deflate or identity")
    return bits


def accepted(accept_encoding: bytes) -> bytes:
    """Return the coding that an Accept-Encoding prefers among ours, empty for none (RFC 9110, 12.5.3)."""
    weights: dict[bytes, float] = {}
    for item in accept_encoding.lower().split(b","):
        coding, *parameters = [part.strip() for part in item.split(b";")]
        weights[coding] = _weight(parameters)
    best, best_weight = b"", 0.0
    for coding in _CODINGS:
        weight = weights.get(coding, weights.get(b"*", 0.0))
        if weight > best_weight:
            best, best_weight = coding, weight
    return best if best_weight >= weights.get(b"identity", 0.0) else b""


def _weight(parameters: Sequence[bytes]) -> float:
    for parameter in parameters:
        if parameter.startswith(b"q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


def compress(chunks: Sequence[Any], coding: bytes) -> bytes:
    """Return the chunks as one compressed body; chunks have the buffer interface. Releases the GIL."""
    deflater = zlib.compressobj(_LEVEL, wbits=_WINDOW_BITS[coding])
    parts = [deflater.compress(memoryview(chunk).cast("B") if memoryview(chunk).nbytes else b"") for chunk in chunks]
    parts.append(deflater.flush())
    return b"".join(parts)
