"""How often a control plane turns to services in rollout, whose clusters answer after a latency, and what a turn takes.

    python -m benchmarks.scale.turns [--clusters 1] [--rolling 100] [--settled 100] [--latency-ms 4 30 100]
                                     [--resting 9000] [--autoscaled] [--watchers 1] [--workers 1] [--threads 12]
                                     [--seconds 60] [--quick]
    python -m benchmarks.scale.turns --real [--clusters 1] [--rolling 100] ...

Real web-less installation: PostgreSQL, Redis, beat, watchers and workers as the chart starts them. Only the API servers
are stood in for (`api_server`), one process for all clusters, on the same cores. Services are applied, come alive, and
those that roll are analysed at their first step. Then for each latency the times of their turns are read from the
database, and requests, processor time, memory and transactions are counted. The statuses of autoscalers change every
15 s. Resting services get no requests; they are copies of one that came alive, in the database and in the stand-in.

With `--real` the API servers are Kubernetes' own, with controllers and scheduler and no latency added (`real_clusters`,
as root): services come alive by Deployments, ReplicaSets and EndpointSlices; their pods are ready without a kubelet.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from benchmarks.scale.installation import ApiServers, Clusters, api_servers, say, set_up, started, until
from benchmarks.scale.turn_times import Measured, lines, measured
from tests.servers.parts import MissingPartError
from tests.servers.postgres import postgres
from tests.servers.redis import redis

_LATENCIES_MS = [4.0, 30.0, 100.0]
_QUICK = {"rolling": 10, "settled": 10, "seconds": 20.0}
_SETTLES_S = 15.0
_WATCHER = "watcher-"
_COPIED, _RESTING = "original-00000", "resting"
_NEVER = 100_000_000
"""Requests that an analysis waits for, so that it judges in each turn and decides nothing."""
_CELERY = ("-m", "celery", "--app=control_plane")
_WORKER = ("worker", "--pool=threads", "--without-gossip", "--without-mingle", "--loglevel=WARNING")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=1)
    parser.add_argument("--rolling", type=int, default=100, help="services in rollout, over all clusters (100)")
    parser.add_argument("--settled", type=int, default=100, help="others, over all clusters (100)")
    parser.add_argument("--resting", type=int, default=0, help="settled services without requests (0)")
    parser.add_argument("--latency-ms", type=float, nargs="+", help="(4, 30 and 100)")
    parser.add_argument("--autoscaled", action="store_true", help="each service has an autoscaler of its cluster")
    parser.add_argument("--watchers", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=12, help="of each worker (12)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of measuring, for each latency (60)")
    parser.add_argument("--real", action="store_true", help="Kubernetes' own API servers and controllers")
    parser.add_argument("--quick", action="store_true", help="10 services in rollout, 10 others, 20 seconds")
    options = parser.parse_args()
    if options.quick:
        options = parser.parse_args(namespace=argparse.Namespace(**_QUICK))
    if options.real and (options.resting or options.autoscaled or options.latency_ms):
        parser.error("--real has no --resting, --autoscaled or --latency-ms; leave them out, or run without --real")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    try:
        found = _found(options)
    except MissingPartError as missing:
        sys.exit(str(missing))
    print("\n".join(lines(found)))


def _found(options: argparse.Namespace) -> list[Measured]:
    if options.real:
        from benchmarks.scale.real_clusters import isolate  # noqa: PLC0415 - what the cluster tests need

        isolate()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fairlead-turns-")))
        database, broker = stack.enter_context(postgres()), stack.enter_context(redis())
        set_up(home, database.url, broker.url)
        clusters = stack.enter_context(_clusters(home, options))
        names = _apply(clusters, options)
        others, watchers = dict(_processes(options)), dict(_watchers(options))
        running = {name: stack.enter_context(started(home, name, how)).pid for name, how in others.items()}
        with ExitStack() as first:
            for name, how in watchers.items():
                first.enter_context(started(home, f"first-{name}", how))
            _come_alive(options)
        if isinstance(clusters, ApiServers):
            _copy(clusters, options)
        running |= {name: stack.enter_context(started(home, name, how)).pid for name, how in watchers.items()}
        return _measure(names, clusters, running, options)


def _clusters(home: Path, options: argparse.Namespace) -> AbstractContextManager[Clusters]:
    if not options.real:
        return api_servers(home)
    from benchmarks.scale.real_clusters import real_clusters  # noqa: PLC0415 - as in `_found`

    return real_clusters(home, options.clusters)


def _processes(options: argparse.Namespace) -> Iterator[tuple[str, Sequence[str]]]:
    for number in range(options.workers):
        own = (f"--concurrency={options.threads}", f"--hostname=worker-{number}@here")
        yield f"worker-{number}", (*_CELERY, *_WORKER, *own)
    yield "beat", (*_CELERY, "beat", "--pidfile=", "--loglevel=WARNING")


def _watchers(options: argparse.Namespace) -> Iterator[tuple[str, Sequence[str]]]:
    for number in range(options.watchers):
        yield f"{_WATCHER}{number}", ("-m", "django", "watch_clusters")


def _apply(clusters: Clusters, options: argparse.Namespace) -> list[str]:
    """Apply clusters and services; returns the names of those that are to roll."""
    from django.utils import timezone  # noqa: PLC0415

    from clusters.services.clusters import cluster_apply  # noqa: PLC0415
    from deployments.services import service_apply  # noqa: PLC0415
    from tests.deployments._support.cluster_files import LEAST  # noqa: PLC0415
    from tests.deployments._support.platform import Platform  # noqa: PLC0415

    platform = Platform()
    for number in (1, 2):
        platform.version(number)
    policy = {"steps": [{"weight": 10, "analysis": {"minRequests": _NEVER}}], "progressDeadline": "24h"}
    platform.policy(name="slow", **policy)
    own = {"artifacts": {"claim": "models", "root": "/artifacts"}, "reach": "apiServer"}
    for number in range(options.clusters):
        file = {**LEAST, "name": f"cluster-{number}", **own, **clusters.file(number)}
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
    names: Sequence[str], clusters: Clusters, processes: Mapping[str, int], options: argparse.Namespace
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
    for latency_ms in [0.0] if options.real else options.latency_ms or _LATENCIES_MS:
        say(f"{latency_ms:g} ms added")
        if isinstance(clusters, ApiServers):
            clusters.set_latency(latency_ms)
        time.sleep(max(_SETTLES_S, options.seconds / 4))
        watchers = [pid for name, pid in processes.items() if name.startswith(_WATCHER)]
        found.append(measured(clusters, processes.values(), watchers, options.seconds))
    return found


if __name__ == "__main__":
    main()
