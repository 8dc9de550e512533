"""How often a control plane turns to services in rollout, whose clusters answer after a latency, and what a turn takes.

    python -m benchmarks.scale.turns [--clusters 1] [--rolling 100] [--settled 100] [--latency-ms 4 30 100]
                                     [--resting 9000] [--autoscaled] [--watchers 1] [--workers 1] [--threads 12]
                                     [--seconds 60]

Real web-less installation: PostgreSQL, Redis, beat, watchers and workers as the chart starts them. Only the API servers
are stood in for (`api_server`), one process for all clusters, on the same cores. Services are applied, come alive, and
those that roll are analysed at their first step. Then for each latency the times of their turns are read from the
database, and requests, processor time, memory and transactions are counted. The statuses of autoscalers change every
15 s. Resting services get no requests; they are copies of one that came alive, in the database and in the stand-in.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

from benchmarks.scale.installation import ApiServers, api_servers, say, set_up, started, until
from tests.servers.postgres import postgres
from tests.servers.redis import redis

_LOOK_S = 0.1
_SETTLES_S = 15.0
_WATCHER = "watcher-"
_COPIED, _RESTING = "original-00000", "resting"
_NEVER = 100_000_000
"""Requests that an analysis waits for, so that it judges in each turn and decides nothing."""
_CELERY = ("-m", "celery", "--app=control_plane")
_WORKER = ("worker", "--pool=threads", "--without-gossip", "--without-mingle", "--loglevel=WARNING")


class Measured(NamedTuple):
    """One latency.

    Attributes:
        p50_s, p99_s, longest_s: between the turns of a service that rolls; one without two turns counts as long as the
            measuring, so that these are lower bounds then.
        turns: of rolling services in a second.
        requests: of the API servers in a second, by method and kind.
        processor_ms: of all processes of the control plane, for each turn of a rolling service.
        busy: processor seconds in a second, of everything here: the control plane, the database and the API servers.
        memory_mib: of the largest watcher.
        commits: of the database, in a second.
    """

    latency_ms: float
    p50_s: float
    p99_s: float
    longest_s: float
    turns: float
    requests: Mapping[str, float]
    processor_ms: float
    busy: float
    memory_mib: float
    commits: float


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=1)
    parser.add_argument("--rolling", type=int, default=100, help="services in rollout, over all clusters (100)")
    parser.add_argument("--settled", type=int, default=100, help="others, over all clusters (100)")
    parser.add_argument("--resting", type=int, default=0, help="settled services without requests (0)")
    parser.add_argument("--latency-ms", type=float, nargs="+", default=[4.0, 30.0, 100.0])
    parser.add_argument("--autoscaled", action="store_true", help="each service has an autoscaler of its cluster")
    parser.add_argument("--watchers", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=12, help="of each worker (12)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of measuring, for each latency (60)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-turns-")))
        database, broker = stack.enter_context(postgres()), stack.enter_context(redis())
        set_up(home, database.url, broker.url)
        servers = stack.enter_context(api_servers(home))
        names = _apply(servers, options)
        others, watchers = dict(_processes(options)), dict(_watchers(options))
        running = {name: stack.enter_context(started(home, name, how)).pid for name, how in others.items()}
        with ExitStack() as first:
            for name, how in watchers.items():
                first.enter_context(started(home, f"first-{name}", how))
            _come_alive(options)
        _copy(servers, options)
        running |= {name: stack.enter_context(started(home, name, how)).pid for name, how in watchers.items()}
        found = _measure(names, servers, running, options)
    print("\n".join(_lines(found)))


def _processes(options: argparse.Namespace) -> Iterator[tuple[str, Sequence[str]]]:
    for number in range(options.workers):
        own = (f"--concurrency={options.threads}", f"--hostname=worker-{number}@here")
        yield f"worker-{number}", (*_CELERY, *_WORKER, *own)
    yield "beat", (*_CELERY, "beat", "--pidfile=", "--loglevel=WARNING")


def _watchers(options: argparse.Namespace) -> Iterator[tuple[str, Sequence[str]]]:
    for number in range(options.watchers):
        yield f"{_WATCHER}{number}", ("-m", "django", "watch_clusters")


def _apply(servers: ApiServers, options: argparse.Namespace) -> list[str]:
    """Apply clusters and services; returns the names of those that are to roll."""
    from django.utils import timezone  # noqa: PLC0415

    from clusters.services.clusters import cluster_apply  # noqa: PLC0415
    from deployments.services import service_apply  # noqa: PLC0415
    from tests.deployments._support.cluster_files import LEAST, pem  # noqa: PLC0415
    from tests.deployments._support.platform import Platform  # noqa: PLC0415

    platform = Platform()
    for number in (1, 2):
        platform.version(number)
    policy = {"steps": [{"weight": 10, "analysis": {"minRequests": _NEVER}}], "progressDeadline": "24h"}
    platform.policy(name="slow", **policy)
    authority = pem(servers.authority.read_text())
    for number in range(options.clusters):
        there = {"server": f"{servers.url}/c/{number}", "certificate-authority-data": authority}
        kubeconfig = {
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": there}],
            "users": [{"name": "robot", "user": {"token": "measured"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "robot"}}],
        }
        own = {"connection": {"kubeconfig": kubeconfig}, "reach": "apiServer"}
        file = {**LEAST, "name": f"cluster-{number}", "artifacts": {"claim": "models", "root": "/artifacts"}, **own}
        cluster_apply(document=file, name=None, actor="bench", now=timezone.now())
    rolling = [f"rolling-{number:05}" for number in range(options.rolling)]
    settled = [f"settled-{number:05}" for number in range(options.settled)]
    copied = [_COPIED] if options.resting else []
    scaled = {"maxReplicas": 3, "scaleMetric": "cpu", "scaleTarget": 80} if options.autoscaled else {}
    for number, name in enumerate((*copied, *rolling, *settled)):
        document = platform.document(policy="slow", **scaled)
        document["metadata"]["name"] = name
        document["spec"]["cluster"] = f"cluster-{number % options.clusters}"
        service_apply(document=document, namespace=None, name=None, actor="bench", now=timezone.now())
    say(f"applied {len(rolling) + len(settled)} services on {options.clusters} clusters")
    return rolling


def _come_alive(options: argparse.Namespace) -> None:
    from django.db.models import F  # noqa: PLC0415

    from deployments.models import InferenceService  # noqa: PLC0415

    ready = InferenceService.objects.filter(phase="Ready")
    count = options.rolling + options.settled + bool(options.resting)
    until(lambda: ready.count() == count, "all services to be ready")
    settled = InferenceService.objects.filter(name=_COPIED, settled=F("changes"))
    until(lambda: not options.resting or settled.exists(), f"{_COPIED} to settle")


def _copy(servers: ApiServers, options: argparse.Namespace) -> None:
    from benchmarks.scale.copies import copy_rows  # noqa: PLC0415

    if options.resting:
        copy_rows(_COPIED, [f"{_RESTING}-{number:05}" for number in range(options.resting)])
        servers.ask(f"/copies/{_COPIED}/{_RESTING}/{options.resting}/{options.clusters}")
        say(f"copied {options.resting} resting services")


def _measure(
    names: Sequence[str], servers: ApiServers, processes: Mapping[str, int], options: argparse.Namespace
) -> list[Measured]:
    from django.utils import timezone  # noqa: PLC0415

    from deployments.models import InferenceService, Rollout  # noqa: PLC0415
    from deployments.services import rollout_start  # noqa: PLC0415

    resting = InferenceService.objects.filter(name__startswith=f"{_RESTING}-", ticked_at__lt=timezone.now())
    until(lambda: not resting.exists(), "a turn to each resting service")
    for name in names:
        rollout_start(namespace="default", name=name, version="2", policy=None, actor="bench", now=timezone.now())
    held = Rollout.objects.exclude(confirmed_at=None)
    until(lambda: held.count() == len(names), "all rollouts to hold their first step")
    found = []
    for latency_ms in options.latency_ms:
        say(f"{latency_ms:g} ms")
        servers.ask(f"/latency/{latency_ms}")
        time.sleep(max(_SETTLES_S, options.seconds / 4))
        found.append(_measured(latency_ms, servers, processes, options.seconds))
    return found


def _measured(latency_ms: float, servers: ApiServers, processes: Mapping[str, int], seconds: float) -> Measured:
    from django.db import connection  # noqa: PLC0415

    from deployments.models import InferenceService  # noqa: PLC0415

    rows = InferenceService.objects.filter(name__startswith="rolling-").values_list("pk", "ticked_at")
    times: dict[int, list[float]] = defaultdict(list)
    asked, used, commits = Counter(_requests(servers)), _processor_s(processes.values()), _commits(connection)
    idle = _idle_s()
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        for key, at in rows.all():
            if at is not None and (not times[key] or times[key][-1] != at.timestamp()):
                times[key].append(at.timestamp())
        time.sleep(_LOOK_S)
    asked = Counter(_requests(servers)) - asked
    turns = sum(len(each) - 1 for each in times.values())
    # A service without a turn had an interval as long as the measuring, at least.
    gaps = [later - earlier for each in times.values() for earlier, later in pairwise(each)]
    gaps += [seconds for each in times.values() if len(each) < 2]
    cuts = quantiles(gaps, n=100, method="inclusive")
    return Measured(
        latency_ms,
        cuts[49],
        cuts[98],
        max(gaps),
        turns / passed,
        {name: count / passed for name, count in asked.most_common()},
        1000 * (_processor_s(processes.values()) - used) / max(turns, 1),
        (os.cpu_count() or 1) - (_idle_s() - idle) / passed,
        max(_memory_mib(pid) for name, pid in processes.items() if name.startswith(_WATCHER)),
        (_commits(connection) - commits) / passed,
    )


def _requests(servers: ApiServers) -> dict[str, int]:
    return {name: int(count) for name, count in servers.ask("/counts").items() if name != "objects"}


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


def _lines(found: Sequence[Measured]) -> Iterator[str]:
    columns = ("latency", "p50", "p99", "longest", "turns/s", "requests/s", "requests/turn", "processor ms/turn")
    columns += ("processors busy", "watcher MiB", "commits/s")
    yield f"| {' | '.join(columns)} |"
    yield "| --- " * len(columns) + "|"
    for each in found:
        total = sum(each.requests.values())
        cells = [f"{each.latency_ms:g} ms", *(f"{value:.1f} s" for value in (each.p50_s, each.p99_s, each.longest_s))]
        cells += [f"{each.turns:.1f}", f"{total:.0f}", f"{total / max(each.turns, 0.01):.1f}"]
        cells += [f"{each.processor_ms:.0f}", f"{each.busy:.2f}", f"{each.memory_mib:.0f}", f"{each.commits:.0f}"]
        yield f"| {' | '.join(cells)} |"
    for each in found:
        yield f"{each.latency_ms:g} ms: " + json.dumps({name: round(value, 1) for name, value in each.requests.items()})


if __name__ == "__main__":
    main()
