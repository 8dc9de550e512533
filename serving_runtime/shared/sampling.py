"""Deterministic sampling of requests: a pure function of the request id.

A gateway that mirrors traffic sends the same `x-request-id` to both sides, and both record the same requests.
"""

import hashlib

_RANGE = 2**64


def is_sampled(request_id: str, share: float) -> bool:
    """Return whether a request is in the share, 0 to 1, of all requests.

    It is where the first eight bytes of the id's SHA-256, as a fraction of their range, are under the share. The sample
    of a smaller share is a subset of that of a larger one.
    """
    digest = hashlib.sha256(request_id.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "big") < share * _RANGE
