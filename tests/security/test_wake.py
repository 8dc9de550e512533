"""Attacks on services that are asleep: callers without a key, unknown names, and a thousand requests held at once.

Agent, Envoy and runtime are real. Who may not call a service wakes nothing, and whoever may cannot fill the gateway.
"""

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from integrations.clusters.base import Access, Desired
from integrations.clusters.local.envoy.wake import HELD_OF_ALL, HELD_OF_SERVICE
from tests.integrations._support.runtimes import Cluster, infer_json, until

BODY = infer_json()
WOKEN = "a request wakes service"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    try:
        found.start(held_s=4)
        yield found
    finally:
        found.close()


def put_to_sleep(cluster: Cluster, service: str, access: Access | None = None) -> None:
    found = cluster.revision(2, 100, 0, slept_at=time.time())
    revision = replace(found, name=f"{service}-00001", model_name=service)
    cluster.driver.apply(Desired("default", service, 1, (revision,), access=access))
    until(lambda: cluster.request(f"/serving/default/{service}/v2/health/live")[0] != 404, f"{service} is routed")


def path(service: str) -> str:
    return f"/serving/default/{service}/v2/models/{service}/infer"


def test_who_may_not_call_it_wakes_nothing(cluster: Cluster) -> None:
    put_to_sleep(cluster, "digits", Access(teams=("fraud",)))
    for headers in ({}, {"authorization": "Bearer a.b.c"}, {"fairlead_team": "fraud", "fairlead_scope": "*"}):
        for _ in range(3):
            assert cluster.request(path("digits"), "POST", BODY, **headers)[0] in (401, 403)
    for unknown in ("default/digits~1", "default/nothing", "other/digits"):
        assert cluster.request(f"/serving/{unknown}/v2/models/digits/infer", "POST", BODY)[0] == 404
    assert cluster.request("/serving/default/digits/v2/repository/index", "POST", BODY)[0] in (401, 403, 404)
    assert WOKEN not in cluster.log()
    assert not cluster.observe().revisions[0].replicas


def test_a_thousand_requests_held_at_once_are_bounded(cluster: Cluster) -> None:
    services = [f"asleep-{number}" for number in range(6)]
    for service in services:
        put_to_sleep(cluster, service)
    put_to_sleep(cluster, "other")
    parts = urlsplit(cluster.url)
    sockets: list[socket.socket] = []
    try:
        with cluster.paused():  # no replica comes
            for number in range(1_000):
                sockets.append(socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20))
                head = f"POST {path(services[number % 6])} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(BODY)}\r\n\r\n"
                sockets[-1].sendall(head.encode() + BODY)
            began = time.monotonic()
            said = [each.recv(65536) for each in sockets]
            assert time.monotonic() - began < 20  # none waits beyond its time
        refused = [answer for answer in said if b"as many requests wait for its first replica as may" in answer]
        late = [answer for answer in said if b"no replica was ready within 4 s" in answer]
        assert len(refused) + len(late) == len(said)
        assert all(answer.startswith(b"HTTP/1.1 503 ") and b"retry-after: 5" in answer for answer in said)
        assert len(late) <= 2 * HELD_OF_ALL
        assert len(late) <= 2 * HELD_OF_SERVICE * len(services)
        assert len(refused) > 100
    finally:
        for each in sockets:
            each.close()
    until(lambda: cluster.request(path("other"), "POST", BODY)[0] == 200, "others wake after that", 60)
