"""By what somebody who watches a cluster's GPUs sees that something changed."""

import zlib
from collections import defaultdict

from deployments.models import Cluster, Repartition


def gpu_marks() -> dict[int, tuple[int, int]]:
    """Return cluster id -> (newest event number, a number for the rest), for a poller of `deployments.feed`."""
    open_ones: dict[int, list[object]] = defaultdict(list)
    for pk, *said in (
        Repartition.objects.filter(settled_at=None).order_by("pk").values_list("cluster", "pk", "phase", "message")
    ):
        open_ones[pk].append(said)
    clusters = Cluster.objects.values_list("pk", "event_seq", "gpus_at")
    return {pk: (event_seq, zlib.crc32(repr((at, open_ones[pk])).encode())) for pk, event_seq, at in clusters}
