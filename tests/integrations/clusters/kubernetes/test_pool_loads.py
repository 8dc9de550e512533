"""The first load of a revision by its pool: which replica is asked, and what its answers come to."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.kubernetes.apply import pool_loads
from integrations.clusters.kubernetes.manifests.owner import Entry
from integrations.clusters.kubernetes.options import GatewayReference, Options, Reach

FIRST = DesiredRevision("digits-00001", "digits", "1", "file:///a", "sha256:aa", 1, 100, pool="default/warm")
SECOND = replace(FIRST, name="digits-00002", model_version="2", weight_percent=0)
STOPPED = replace(FIRST, name="digits-00003", model_version="3", weight_percent=0, replicas=0)
DESIRED = Desired("default", "digits", 1, (FIRST, SECOND, STOPPED))
ENTRY = Entry("fairlead-digits", "u", "1", 1, leaving=False, deleted=False, pool="warm")
OPTIONS = Options(GatewayReference("gateway", "gateways"), "runtime:1")
SLICES = [
    {
        "endpoints": [
            {"addresses": ["127.0.0.1"], "conditions": {"ready": True}},
            {"addresses": ["127.0.0.2"], "conditions": {"ready": False}},
        ]
    }
]


class Replica:
    """Answers loads of versions as `answers` says, by version; `asked` are their paths."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, object]] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.asked.append(self.path)
                status, content = outer.answers.get(self.path.split("@")[1].split("/")[0], (200, {}))
                body = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})


@pytest.fixture
def replica(monkeypatch: pytest.MonkeyPatch) -> Iterator[Replica]:
    found = Replica()
    found.thread.start()
    monkeypatch.setattr(pool_loads, "METRICS_PORT", found.server.server_address[1])
    yield found
    found.server.shutdown()
    found.thread.join()
    found.server.server_close()


def test_each_running_revision_is_loaded_once(replica: Replica) -> None:
    entry = pool_loads.loaded(DESIRED, ENTRY, SLICES, OPTIONS, 0.0)
    assert entry.loaded == {FIRST.name, SECOND.name}
    assert replica.asked == [f"/v2/repository/models/default.digits@{number}/load" for number in (1, 2)]
    assert pool_loads.loaded(DESIRED, entry, SLICES, OPTIONS, 1.0) == entry
    assert len(replica.asked) == 2


def test_a_failure_is_kept_and_tried_again_after_a_while(replica: Replica) -> None:
    replica.answers = {"2": (500, {"error": "no model"}), "1": (503, ["?"])}
    entry = pool_loads.loaded(DESIRED, ENTRY, SLICES, OPTIONS, 100.0)
    assert entry.loaded == frozenset()
    assert entry.failures == {FIRST.name: ("it answered 503", 100.0), SECOND.name: ("no model", 100.0)}
    assert pool_loads.loaded(DESIRED, entry, SLICES, OPTIONS, 105.0) == entry
    replica.answers = {}
    assert pool_loads.loaded(DESIRED, entry, SLICES, OPTIONS, 111.0).failures == {}
    gone = replace(DESIRED, revisions=(FIRST,))
    assert set(pool_loads.loaded(gone, entry, SLICES, OPTIONS, 105.0).failures) == {FIRST.name}


def test_no_replica_is_asked_where_none_is_ready_or_pods_cannot_be_reached(replica: Replica) -> None:
    assert pool_loads.loaded(DESIRED, ENTRY, [], OPTIONS, 0.0) == ENTRY
    by_server = replace(OPTIONS, reach=Reach.API_SERVER)
    assert pool_loads.loaded(DESIRED, ENTRY, SLICES, by_server, 0.0).loaded == {FIRST.name, SECOND.name}
    assert replica.asked == []


def test_every_replica_is_the_home_of_some_services() -> None:
    hosts = ["10.0.0.1", "10.0.0.2", "[fd00::1]"]
    found = {pool_loads.home_among(hosts, "default", f"model-{number}") for number in range(50)}
    assert found == {*hosts}
    assert pool_loads.home_among([], "default", "digits") == ""
