"""Change markers of clusters' GPUs, for the live feed."""

import zlib
from collections import defaultdict
from collections.abc import Collection

from clusters.models import Cluster
from events.services.live_feed import Marks
from gpus.models import Repartition


def gpu_marks(clusters: Collection[int]) -> Marks:
    """Return a change marker for each of these clusters' GPUs; none for all together."""
    open_ones: dict[int, list[object]] = defaultdict(list)
    for pk, *said in (
        Repartition.objects.filter(settled_at=None, cluster__in=clusters)
        .order_by("pk")
        .values_list("cluster", "pk", "phase", "message")
    ):
        open_ones[pk].append(said)
    rows = Cluster.objects.filter(pk__in=clusters).values_list("pk", "event_seq", "gpus_at")
    return Marks(0, {pk: (event_seq, zlib.crc32(repr((at, open_ones[pk])).encode())) for pk, event_seq, at in rows})
