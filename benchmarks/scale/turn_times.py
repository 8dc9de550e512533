"""Times between turns of services that roll, from the database, and what a control plane takes meanwhile."""

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from benchmarks.scale.installation import Clusters

_LOOK_S = 0.1
_LATENCY_EACH_S = 1.0
_SHOWN = 0.05
"""Rarer requests in a second are not printed by kind."""


class Measured(NamedTuple):
    """One latency.

    Attributes:
        latency_ms: of the API servers, as set; of real ones the median round trip of a request each second.
        p50_s, p99_s, longest_s: between the turns of a service that rolls; one without two turns counts as long as the
            measuring, so that these are lower bounds then.
        turns: of rolling services in a second.
        sent: requests of Fairlead to the API servers in a second.
        requests: the same by method and kind; of real API servers those of everybody.
        processor_ms: of all processes of the control plane, for each turn of a rolling service.
        busy: processor seconds in a second, of everything here: the control plane, the database and the API servers.
        clusters_busy: of the API servers, with all that runs beside real ones but the nodes.
        memory_mib: of the largest watcher.
        clusters_mib: of the largest process of the API servers.
        commits: of the database, in a second.
    """

    latency_ms: float
    p50_s: float
    p99_s: float
    longest_s: float
    turns: float
    sent: float
    requests: Mapping[str, float]
    processor_ms: float
    busy: float
    clusters_busy: float
    memory_mib: float
    clusters_mib: float
    commits: float


def measured(clusters: Clusters, processes: Collection[int], watchers: Collection[int], seconds: float) -> Measured:
    """Return what happens in so many seconds from now on.

    Args:
        processes: all of the control plane.
        watchers: those among them that are watchers.
    """
    from django.db import connection  # noqa: PLC0415

    from deployments.models import InferenceService  # noqa: PLC0415

    rows = InferenceService.objects.filter(name__startswith="rolling-").values_list("pk", "ticked_at")
    times: dict[int, list[float]] = defaultdict(list)
    latencies: list[float] = []
    before, used, commits = clusters.requests(), _processor_s(processes), _commits(connection)
    idle, theirs = _idle_s(), _processor_s(clusters.processes.values())
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        for key, at in rows.all():
            if at is not None and (not times[key] or times[key][-1] != at.timestamp()):
                times[key].append(at.timestamp())
        if passed >= len(latencies) * _LATENCY_EACH_S:
            latencies.append(clusters.latency_ms())
        time.sleep(_LOOK_S)
    after = clusters.requests()
    kinds = Counter(after.kinds) - Counter(before.kinds)
    turns = sum(len(each) - 1 for each in times.values())
    # A service without a turn had an interval as long as the measuring, at least.
    gaps = [later - earlier for each in times.values() for earlier, later in pairwise(each)]
    gaps += [seconds for each in times.values() if len(each) < 2]
    cuts = quantiles(gaps, n=100, method="inclusive")
    return Measured(
        median(latencies),
        cuts[49],
        cuts[98],
        max(gaps),
        turns / passed,
        (after.ours - before.ours) / passed,
        {name: count / passed for name, count in kinds.most_common()},
        1000 * (_processor_s(processes) - used) / max(turns, 1),
        (os.cpu_count() or 1) - (_idle_s() - idle) / passed,
        (_processor_s(clusters.processes.values()) - theirs) / passed,
        max(map(_memory_mib, watchers)),
        max(map(_memory_mib, clusters.processes.values())),
        (_commits(connection) - commits) / passed,
    )


def _idle_s() -> float:
    """Return the seconds that the processors had nothing to do since the machine began, all of them together."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def _memory_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _processor_s(processes: Iterable[int]) -> float:
    ticks = 0
    for pid in processes:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _commits(connection: Any) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def lines(found: Sequence[Measured]) -> Iterator[str]:
    """Yield a table with a row for each, and then the requests of each by method and kind."""
    columns = ["latency", "p50", "p99", "longest", "turns/s", "requests/s", "requests/turn", "processor ms/turn"]
    columns += ["processors busy", "of the API servers", "watcher MiB", "API server MiB", "commits/s"]
    yield f"| {' | '.join(columns)} |"
    yield "| --- " * len(columns) + "|"
    for each in found:
        cells = [f"{each.latency_ms:.3g} ms", *(f"{value:.1f} s" for value in (each.p50_s, each.p99_s, each.longest_s))]
        cells += [f"{each.turns:.1f}", f"{each.sent:.0f}", f"{each.sent / max(each.turns, 0.01):.1f}"]
        cells += [f"{each.processor_ms:.0f}", f"{each.busy:.2f}", f"{each.clusters_busy:.2f}"]
        cells += [f"{each.memory_mib:.0f}", f"{each.clusters_mib:.0f}", f"{each.commits:.0f}"]
        yield f"| {' | '.join(cells)} |"
    for each in found:
        often = {name: round(value, 1) for name, value in each.requests.items() if value >= _SHOWN}
        yield f"{each.latency_ms:.3g} ms: {json.dumps(often)}"
