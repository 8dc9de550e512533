"""By what somebody who watches a cluster's GPUs sees that something changed."""

import zlib
from collections.abc import Iterable

from deployments.models import Cluster


def gpu_marks() -> dict[int, tuple[int, int]]:
    """Return cluster id -> (newest event number, a number for the rest), for a poller of `deployments.feed`."""
    clusters = Cluster.objects.values_list("pk", "event_seq", "gpus_at")
    return {pk: (event_seq, _number([gpus_at])) for pk, event_seq, gpus_at in clusters}


def _number(values: Iterable[object]) -> int:
    return zlib.crc32(repr(list(values)).encode())
