"""Deterministic sampling by request id, equal to that of the replicas. Pure."""

import hashlib

_RANGE = 2**64


def is_sampled(request_id: str, share_percent: float) -> bool:
    """Return whether a request is in the share: the first eight bytes of its id's SHA-256, as a fraction, are below."""
    digest = hashlib.sha256(request_id.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") < share_percent / 100 * _RANGE
