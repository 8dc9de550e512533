"""Copies of a pool's model in a real Envoy: every copy gets its part of the requests, no other replica gets one."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from benchmarks.serving import envoys
from integrations.clusters.base import CallerKeys
from integrations.clusters.local.agent.gateway.routing import Routing
from integrations.clusters.local.envoy.pools import entries, homes
from integrations.clusters.local.envoy.values import Backend, Endpoint, RevisionEndpoints, ServiceRoute

NAMES = [f"warm-00001-{number}" for number in range(6)]
SENT = 60


class Handler(BaseHTTPRequestHandler):
    """Answers with the port of its server."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = str(self.server.server_address[1]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def ports() -> Iterator[list[int]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) for _ in NAMES]
        for server in servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
        yield [server.server_address[1] for server in servers]


def service(name: str, *shares: int, copies: int) -> ServiceRoute:
    keys = tuple(homes("default", name, NAMES, copies))
    backends = (
        Backend(f"{name}-{number}", str(number), share, pooled=True, pool="default/warm", copies=keys)
        for number, share in enumerate(shares, 1)
    )
    return ServiceRoute("default", name, tuple(backends))


def asked(port: int, name: str) -> Counter[tuple[int, str]]:
    """Return how often each port and revision answered, to a client that writes the gateway's header itself."""
    url = f"http://127.0.0.1:{port}/serving/default/{name}/v2/models/{name}/infer"
    headers = {"fairlead-pool-copy": "default/digits#999"}
    with httpx.Client() as client:
        answers = [client.post(url, json={}, headers=headers).raise_for_status() for _ in range(SENT)]
    return Counter((int(each.text), each.headers["fairlead-revision"]) for each in answers)


def test_requests_go_to_the_copies_alone_in_equal_parts(ports: list[int], tmp_path: Path) -> None:
    endpoints = tuple(Endpoint(port, port, name=name) for port, name in zip(ports, NAMES, strict=True))
    services = (service("one", 100, copies=1), service("three", 100, copies=3), service("split", 20, 80, copies=2))
    routing = Routing(services, (RevisionEndpoints("default", "warm", endpoints, pooled=True),), CallerKeys())
    process, port = envoys.start(routing, tmp_path / "envoy")
    try:
        found = {each.service: asked(port, each.service) for each in services}
    finally:
        process.stop()
    for each, copies in (("one", 1), ("three", 3), ("split", 2)):
        reached = {where for where, _ in found[each]}
        assert reached == {ports[home] for home in homes("default", each, NAMES, copies).values()}
    assert min(found["three"].values()) > SENT / 3 / 4
    of_first = sum(number for (_, revision), number in found["split"].items() if revision == "split-1")
    assert 0 < of_first < SENT / 2


def test_entries_keep_the_proportions_of_shares() -> None:
    split = service("split", 20, 80, copies=3)
    first, second = split.backends
    parts = entries(split, [first, Backend("own", "2", 80)])
    assert [(each.revision, each.share_percent) for each in parts] == [*[("split-1", 20)] * 3, ("own", 240)]
    assert [each.share_percent for each in entries(split, [first, second])] == [20] * 3 + [80] * 3


def test_each_copy_has_a_replica_and_the_first_stays() -> None:
    alone = homes("default", "digits", NAMES, 1)
    assert list(alone) == ["default/digits"]
    for copies in range(2, 9):
        found = homes("default", "digits", NAMES, copies)
        assert len(set(found.values())) == len(found) == min(copies, len(NAMES))
        assert next(iter(found.items())) == next(iter(alone.items()))
    assert homes("default", "digits", [], 3) == {}
