"""What the gateway adds to a request: the same server asked directly and through Envoy, in turns.

    python -m benchmarks.serving.gateway [--rounds 15] [--seconds 2] [--record]

Envoy is the local installation's: its program, its flags, and its files as the agent writes them for one service of one
revision, which is this server. HTTP binary and gRPC, mlp_small, one request at a time and 32 at once, in a closed loop.
The server has one core and the client another; Envoy has a third where there is one, else it shares the server's, so
that at 32 at once requests wait for both: there its processor time says more than latency does.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.serving import loads, machine, models, requests
from benchmarks.serving.peers.base import Running
from benchmarks.serving.peers.fairlead import Fairlead
from benchmarks.serving.processes import (
    CLIENT_CORE,
    SERVER_CORE,
    Process,
    answers,
    free_ports,
    run_program,
)
from integrations.clusters.local.agent.gateway import envoy_command
from integrations.clusters.local.envoy.bootstrap import CLUSTERS_FILE, ROUTES_FILE, bootstrap
from integrations.clusters.local.envoy.clusters import clusters, endpoints
from integrations.clusters.local.envoy.names import endpoints_file
from integrations.clusters.local.envoy.routes import SERVICE_METADATA, route_table
from integrations.clusters.local.envoy.words import Backend, Endpoint, RevisionEndpoints, ServiceRoute
from integrations.clusters.local.files import write_json

_MODEL = models.MODELS["mlp_small"]
_SERVICE, _REVISION = ServiceRoute("default", "small", (), model=_MODEL.name), "small-00001"
_HEADERS = {SERVICE_METADATA: _SERVICE.key}
"""By which Envoy finds the service of a gRPC call; sent to the server itself, too, which has no use for it."""

_POINTS = (("http", 1), ("http", 32), ("grpc", 1), ("grpc", 32))
_WAYS = ("direct", "through")
_COLUMNS = ("p50", "Envoy adds", "p99", "Envoy adds", "server", "server behind Envoy", "Envoy", "Envoy / server")

_RESULTS = Path(__file__).parents[1] / "results" / "gateway.json"


class Added(NamedTuple):
    """What Envoy adds at one point, as medians over the rounds, in microseconds.

    Attributes:
        p50_us, p99_us: asked directly.
        added_p50_us, added_p99_us: through Envoy less directly, round by round.
        server_us, behind_us: the server's processor time a request, asked directly and behind Envoy.
        envoy_us: Envoy's processor time a request.
    """

    p50_us: float
    added_p50_us: float
    p99_us: float
    added_p99_us: float
    server_us: float
    behind_us: float
    envoy_us: float

    @property
    def envoy_share(self) -> float:
        """Return Envoy's processor time over that of the server asked directly."""
        return self.envoy_us / self.server_us


def added(rows: Sequence[Mapping[str, Any]]) -> Added:
    """Return what the rounds of one point come to."""

    def middle(way: str, what: str) -> float:
        return median(row[way][what] for row in rows)

    def difference(what: str) -> float:
        return median(row["through"][what] - row["direct"][what] for row in rows)

    return Added(
        middle("direct", "p50_us"),
        difference("p50_us"),
        middle("direct", "p99_us"),
        difference("p99_us"),
        middle("direct", "server_us"),
        middle("through", "server_us"),
        middle("through", "envoy_us"),
    )


def lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the table, which is Markdown."""
    yield f"| | {' | '.join(_COLUMNS)} |"
    yield "| --- " * (len(_COLUMNS) + 1) + "|"
    for form, calls in dict.fromkeys((row["form"], row["calls"]) for row in rows):
        found = added([row for row in rows if (row["form"], row["calls"]) == (form, calls)])
        name = f"{'HTTP binary' if form == 'http' else 'gRPC'}, {calls} at once"
        latencies = (found.p50_us, found.added_p50_us, found.p99_us, found.added_p99_us)
        processor = (found.server_us, found.behind_us, found.envoy_us)
        cells = [f"{each:,.0f}" for each in (*latencies, *processor)]
        yield f"| {name} | {' | '.join(cells)} | {found.envoy_share:.1f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=int, default=2, help="of load, for each way to ask in each round (2)")
    parser.add_argument("--record", action="store_true", help=f"write {_RESULTS.relative_to(Path.cwd())}")
    options = parser.parse_args()
    if loads.missing():
        sys.exit(f"The benchmark lacks {', '.join(loads.missing())}. On Debian: apt-get install wrk nghttp2-client")
    with tempfile.TemporaryDirectory(prefix="fairlead-gateway-") as name:
        found = measured(Path(name), options.rounds, options.seconds)
    print("\n".join(lines(found["rounds"])))
    if options.record:
        _RESULTS.write_text(json.dumps(found, separators=(",", ":")).replace('{"round"', '\n{"round"') + "\n")
    return 0


def measured(folder: Path, rounds: int, seconds: int) -> dict[str, Any]:
    """Return the machine and every round."""
    about = {**machine.described(), "envoy_core": _envoy_core()}
    rows: list[dict[str, Any]] = []
    models.save(_MODEL.name, folder / "models" / f"{_MODEL.name}.onnx")
    server = Fairlead(serves=(_MODEL.name,)).start(Path(sys.executable), folder / "models", folder)
    try:
        server.process.wait_until(server.ready)
        envoy = _envoy(server, folder)
        try:
            envoy.process.wait_until(envoy.ready)
            for number in range(rounds + 1):
                for form, calls in _POINTS:
                    row = {"round": number, "form": form, "calls": calls}
                    for way in _WAYS if number % 2 else reversed(_WAYS):
                        row[way] = _asked(server, envoy, way, form, calls, seconds, folder)
                    if number:  # the first one is for caches to fill and the model to move into the loop
                        rows.append(row)
                        print(row, file=sys.stderr, flush=True)
        finally:
            envoy.process.stop()
    finally:
        server.process.stop()
    return {"machine": about, "rounds": rows}


def _asked(
    server: Running, envoy: Running, way: str, form: str, calls: int, seconds: int, scratch: Path
) -> dict[str, float]:
    """Return what clients saw, and the processor time of each process for a request."""
    asked = server if way == "direct" else envoy
    before = server.process.cpu_s(), envoy.process.cpu_s()
    if form == "http":
        assert asked.http is not None
        load = loads.wrk(*asked.http(_MODEL), calls, seconds, scratch)
    else:
        assert asked.grpc_port is not None
        message = requests.v2_grpc(_MODEL)
        load = loads.h2load(asked.grpc_port, message, calls, 1, seconds, scratch, headers=_HEADERS, latencies=True)
    after = server.process.cpu_s(), envoy.process.cpu_s()
    server_us, envoy_us = (
        round((last - first) / load.count * 1e6, 2) for first, last in zip(before, after, strict=True)
    )
    assert load.p50_us is not None
    assert load.p99_us is not None
    found = {"per_s": load.per_s, "p50_us": load.p50_us, "p99_us": load.p99_us, "server_us": server_us}
    return found if way == "direct" else {**found, "envoy_us": envoy_us}


def _envoy(server: Running, scratch: Path) -> Running:
    """Start Envoy before the server as the agent does before a replica."""
    assert server.http is not None
    assert server.grpc_port is not None
    http_port = int(server.http(_MODEL)[0].split(":")[2].partition("/")[0])
    folder = scratch / "envoy"
    (folder / "endpoints").mkdir(parents=True)
    (port,) = free_ports(1)
    revision = RevisionEndpoints(_SERVICE.namespace, _REVISION, (Endpoint(http_port, server.grpc_port),))
    backends = (Backend(_REVISION, model_version="1", share_percent=100),)
    files = {
        "bootstrap.json": bootstrap(
            folder=str(folder),
            host="127.0.0.1",
            port=port,
            admin_socket=str(folder / "admin.sock"),
            started_at=f"{time.time():.3f}",
        ),
        CLUSTERS_FILE: clusters([revision], folder=str(folder), version="1"),
        ROUTES_FILE: route_table([replace(_SERVICE, backends=backends)], version="1"),
    }
    for use in revision.uses:
        files[endpoints_file(revision.namespace, revision.revision, use)] = endpoints(revision, use, version="1")
    for place, content in files.items():
        write_json(folder / place, content)
    process = Process(envoy_command(folder), scratch / "envoy.log", cores=_envoy_core())
    url = f"http://127.0.0.1:{port}/serving/{_SERVICE.key}/v2"
    body = requests.v2_binary(_MODEL)
    return Running(
        process,
        ready=answers(f"{url}/health/ready"),
        http=lambda model: (f"{url}/models/{model.name}/infer", body),
        grpc_port=port,
    )


def _envoy_core() -> str:
    """Return a core that neither the server nor the client has, or the server's where there is none."""
    others = {str(core) for core in os.sched_getaffinity(0)} - {SERVER_CORE, CLIENT_CORE}
    return min(others, default=SERVER_CORE)


if __name__ == "__main__":
    run_program(main)
