"""Which requests belong to a share of all: by their id alone, as the replicas decide it. Pure."""

import hashlib

_RANGE = 2**64


def is_sampled(request_id: str, share_percent: float) -> bool:
    """Return whether a request is in the share: its id's SHA-256, the first eight bytes as a fraction, is below it."""
    digest = hashlib.sha256(request_id.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") < share_percent / 100 * _RANGE
