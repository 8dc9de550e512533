"""What the gateway adds to a request: the same server asked directly and through Envoy, in turns.

    python -m benchmarks.serving.gateway [--rounds 15] [--seconds 2] [--services 1000] [--guarded] [--record]

Envoy is the local installation's: its program, its flags, and what the agent sends it for one service of one revision.
Its replica is another process of this server, which listens on Unix sockets as replicas do. With --services a second
Envoy, asked in turns with the first, has so many others, too, among which it has to find a request's. With --guarded
another one checks keys: the service is for one team, and every request has a key of it. HTTP binary and gRPC,
mlp_small, one request at a time and 32 at once, in a closed loop.

The server has one core and the client another; Envoy has a third where there is one, else it shares the server's, so
that at 32 at once requests wait for both: there its processor time says more than latency does.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from access.domain.tokens import Claims, new_signing_key, signed
from benchmarks.serving import envoys, loads, machine, models, requests
from benchmarks.serving.peers.base import Running
from benchmarks.serving.peers.fairlead import Fairlead
from benchmarks.serving.processes import (
    CLIENT_CORE,
    SERVER_CORE,
    Process,
    answers,
    run_program,
)
from integrations.clusters.base import Access, CallerKeys
from integrations.clusters.local.agent.gateway.routing import Routing
from integrations.clusters.local.envoy.scopes import SERVICE_METADATA
from integrations.clusters.local.envoy.values import Backend, Endpoint, RevisionEndpoints, ServiceRoute

_MODEL = models.MODELS["mlp_small"]
_NAMESPACE, _SERVICE = "default", "small"
_HEADERS = {SERVICE_METADATA: f"{_NAMESPACE}/{_SERVICE}"}
"""By which Envoy finds the service of a gRPC call; sent to the server itself, too, which has no use for it."""

_POINTS = (("http", 1), ("http", 32), ("grpc", 1), ("grpc", 32))
_COLUMNS = ("p50", "Envoy adds", "p99", "Envoy adds", "server", "server behind Envoy", "Envoy", "Envoy / server")

_RESULTS = Path(__file__).parents[1] / "results" / "gateway.json"


class Added(NamedTuple):
    """What Envoy adds at one point, as medians over the rounds, in microseconds.

    Attributes:
        p50_us, p99_us: asked directly.
        added_p50_us, added_p99_us: through Envoy less directly, round by round.
        server_us, behind_us: the server's processor time a request, asked directly and behind Envoy.
        envoy_us: Envoy's processor time a request.
        beside: the same beside other services, over that beside none, round by round; None where there were none.
        keys_us: Envoy's processor time a request with a key that is checked, less that without, round by round.
        keys_share: throughput with a key that is checked, over that without, round by round.
    """

    p50_us: float
    added_p50_us: float
    p99_us: float
    added_p99_us: float
    server_us: float
    behind_us: float
    envoy_us: float
    beside: float | None = None
    keys_us: float | None = None
    keys_share: float | None = None

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

    found = Added(
        middle("direct", "p50_us"),
        difference("p50_us"),
        middle("direct", "p99_us"),
        difference("p99_us"),
        middle("direct", "server_us"),
        middle("through", "server_us"),
        middle("through", "envoy_us"),
        median(row["beside"]["envoy_us"] / row["through"]["envoy_us"] for row in rows) if "beside" in rows[0] else None,
    )
    if "guarded" not in rows[0]:
        return found
    return found._replace(
        keys_us=median(row["guarded"]["envoy_us"] - row["through"]["envoy_us"] for row in rows),
        keys_share=median(row["guarded"]["per_s"] / row["through"]["per_s"] for row in rows),
    )


def lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the table, which is Markdown."""
    columns = list(_COLUMNS)
    columns += ["beside others"] if any("beside" in row for row in rows) else []
    columns += ["keys add", "throughput with keys"] if any("guarded" in row for row in rows) else []
    yield f"| | {' | '.join(columns)} |"
    yield "| --- " * (len(columns) + 1) + "|"
    for form, calls in dict.fromkeys((row["form"], row["calls"]) for row in rows):
        found = added([row for row in rows if (row["form"], row["calls"]) == (form, calls)])
        name = f"{'HTTP binary' if form == 'http' else 'gRPC'}, {calls} at once"
        latencies = (found.p50_us, found.added_p50_us, found.p99_us, found.added_p99_us)
        processor = (found.server_us, found.behind_us, found.envoy_us)
        cells = [f"{each:,.0f}" for each in (*latencies, *processor)]
        ratios = [f"{found.envoy_share:.1f}", *([f"{found.beside:.2f}"] if found.beside is not None else [])]
        if found.keys_us is not None and found.keys_share is not None:
            ratios += [f"{found.keys_us:.0f}", f"{found.keys_share:.2f}"]
        yield f"| {name} | {' | '.join([*cells, *ratios])} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=int, default=2, help="of load, for each way to ask in each round (2)")
    parser.add_argument("--services", type=int, default=0, metavar="N", help="measure beside N other services, too (0)")
    parser.add_argument("--guarded", action="store_true", help="measure with keys that are checked, too")
    parser.add_argument("--record", action="store_true", help=f"write {_RESULTS.relative_to(Path.cwd())}")
    options = parser.parse_args()
    if loads.missing():
        sys.exit(f"The benchmark lacks {', '.join(loads.missing())}. On Debian: apt-get install wrk nghttp2-client")
    with tempfile.TemporaryDirectory(prefix="fairlead-gateway-") as name:
        found = measured(Path(name), options.rounds, options.seconds, options.services, guarded=options.guarded)
    print("\n".join(lines(found["rounds"])))
    if options.record:
        _RESULTS.write_text(json.dumps(found, separators=(",", ":")).replace('{"round"', '\n{"round"') + "\n")
    return 0


def measured(folder: Path, rounds: int, seconds: int, services: int, *, guarded: bool) -> dict[str, Any]:
    """Return the machine and every round."""
    about = {**machine.described(), "envoy_core": _envoy_core(), "services": services}
    rows: list[dict[str, Any]] = []
    models.save(_MODEL.name, folder / "models" / f"{_MODEL.name}.onnx")
    kind = Fairlead(serves=(_MODEL.name,))
    asked: dict[str, Running] = {}
    servers: list[Process] = []
    (folder / "replica").mkdir()
    try:
        asked["direct"] = kind.start(Path(sys.executable), folder / "models", folder)
        servers.append(asked["direct"].process)
        replica, endpoint = kind.start_behind(folder / "models", folder / "replica")
        servers.append(replica)
        asked["through"] = _envoy(endpoint, folder / "envoy")
        if services:
            asked["beside"] = _envoy(endpoint, folder / "envoy-beside", others=services)
        if guarded:
            asked["guarded"] = _envoy(endpoint, folder / "envoy-guarded", guarded=True)
        for each in asked.values():
            each.process.wait_until(each.ready)
        for number in range(rounds + 1):
            for form, calls in _POINTS:
                row: dict[str, Any] = {"round": number, "form": form, "calls": calls}
                for way in asked if number % 2 else reversed(asked):
                    server = servers[way != "direct"]
                    row[way] = _asked(server, asked[way], form, calls, seconds, folder)
                if number:  # the first one is for caches to fill and the model to move into the loop
                    rows.append(row)
                    print(row, file=sys.stderr, flush=True)
    finally:
        for process in dict.fromkeys([*(each.process for each in reversed(asked.values())), *servers]):
            process.stop()
    return {"machine": about, "rounds": rows}


def _asked(server: Process, asked: Running, form: str, calls: int, seconds: int, scratch: Path) -> dict[str, float]:
    """Return what clients saw, and the processor time of the server and of Envoy, if it was asked, for a request."""
    before = server.cpu_s(), asked.process.cpu_s()
    if form == "http":
        assert asked.http is not None
        load = loads.wrk(*asked.http(_MODEL), calls, seconds, scratch)
    else:
        assert asked.grpc_port is not None
        message = requests.v2_grpc(_MODEL)
        headers = {**_HEADERS, **asked.headers}
        load = loads.h2load(asked.grpc_port, message, calls, 1, seconds, scratch, headers=headers, latencies=True)
    after = server.cpu_s(), asked.process.cpu_s()
    server_us, envoy_us = (
        round((last - first) / load.count * 1e6, 2) for first, last in zip(before, after, strict=True)
    )
    assert load.p50_us is not None
    assert load.p99_us is not None
    found = {"per_s": load.per_s, "p50_us": load.p50_us, "p99_us": load.p99_us, "server_us": server_us}
    return found if asked.process is server else {**found, "envoy_us": envoy_us}


def _envoy(replica: Endpoint, folder: Path, *, others: int = 0, guarded: bool = False) -> Running:
    """Start Envoy as the agent does before a replica, beside so many services of the same kind.

    Args:
        guarded: whether it lets only callers of a team in, and the requests have a key.
    """
    access, keys, headers = _guard() if guarded else (None, CallerKeys(), {})
    names = [*(f"other-{number}" for number in range(others)), _SERVICE]
    routing = Routing(
        tuple(
            ServiceRoute(
                _NAMESPACE, name, (Backend(f"{name}-00001", "1", share_percent=100),), model=_MODEL.name, access=access
            )
            for name in names
        ),
        tuple(RevisionEndpoints(_NAMESPACE, f"{name}-00001", (replica,)) for name in names),
        keys,
    )
    process, port = envoys.start(routing, folder, cores=_envoy_core())
    url = f"http://127.0.0.1:{port}/serving/{_NAMESPACE}/{_SERVICE}/v2"
    body = requests.v2_binary(_MODEL)
    body = replace(body, headers={**body.headers, **headers})
    return Running(
        process,
        ready=answers(f"{url}/health/ready", headers=headers),
        http=lambda model: (f"{url}/models/{model.name}/infer", body),
        grpc_port=port,
        headers=headers,
    )


def _guard() -> tuple[Access, CallerKeys, dict[str, str]]:
    """Return who may call, by which keys that is checked, and the header of a request that has one."""
    private, public = new_signing_key("k1")
    now = datetime.now(UTC)
    claims = Claims("bench", "id", "team", "", (f"{_NAMESPACE}/*",), now, now + timedelta(days=1))
    token = signed(claims, private=private, kid="k1")
    return Access(teams=("team",)), CallerKeys(public=(public,)), {"authorization": f"Bearer {token}"}


def _envoy_core() -> str:
    """Return a core that neither the server nor the client has, or the server's where there is none."""
    others = {str(core) for core in os.sched_getaffinity(0)} - {SERVER_CORE, CLIENT_CORE}
    return min(others, default=SERVER_CORE)


if __name__ == "__main__":
    run_program(main)
