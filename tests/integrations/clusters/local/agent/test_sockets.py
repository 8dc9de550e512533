"""Replicas of the real runtime on Unix sockets: how they are reached, restarted and ended, and where they cannot be."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from integrations.clusters.base import ReplicaPhase
from integrations.clusters.local.agent.gateway.envoy_admin import admin_socket
from integrations.clusters.local.agent.replicas.relay import RELAYED
from integrations.clusters.local.agent.sockets import ReplicaSockets, help_of, replicas_folder, takes_sockets
from integrations.clusters.local.confinement import network_of
from integrations.clusters.local.files import Layout
from integrations.metrics import pages
from integrations.sandbox.policy import NetworkAccess
from tests.integrations._support.runtimes import RUNTIME, V2_SERVER, infer_json

INFER = "/serving/default/digits/v2/models/digits/infer"


def socket_files(cluster) -> list[str]:
    """Return the names of all; a folder may go while they are listed."""
    return sorted(name for _, _, names in os.walk(replicas_folder(cluster.layout)) for name in names)


def test_a_replica_answers_over_sockets_alone_from_start_to_end(cluster, traffic, runtime, eventually):
    cluster.start(runtime=runtime)
    cluster.apply(1, cluster.revision(1, 100))
    [replica] = cluster.until_ready(1).revisions[0].replicas
    cluster.until_weights(r1=100)
    assert socket_files(cluster) == ["grpc", "http", "metrics"]
    assert replica.metrics_url.startswith("http+unix://")
    with traffic(cluster.url) as sent:  # over HTTP and gRPC
        sent.until_sent(20)
        page = cluster.driver.metrics_page("default", replica)
        assert 'nv_inference_request_success{model="digits",version="1"}' in page

        cluster.apply(2, cluster.revision(1, 0, replicas=0), cluster.revision(2, 100))  # and the first is drained
        cluster.until_weights(r1=0, r2=100)
        sent.until_sent(20)
        eventually(lambda: len(socket_files(cluster)) == 3, "the first one's sockets are gone")
    assert sent.failures == []

    killed = cluster.pid("default.digits-00002-0")
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: cluster.pid("default.digits-00002-0") != killed, "it is started again")
    cluster.until_ready(1)
    cluster.until_weights(r1=0, r2=100)
    eventually(lambda: cluster.request(INFER, "POST", infer_json())[0] == 200, "it answers at the same place")

    cluster.driver.delete("default", "digits", 5)
    eventually(lambda: socket_files(cluster) == [], "no socket is left")


def test_workers_of_a_replica_in_a_long_path_answer(cluster_at_length, runtime):
    cluster = cluster_at_length
    cluster.start(runtime=f"{runtime} --workers=2")
    cluster.apply(1, cluster.revision(1, 100))
    [replica] = cluster.until_ready(1).revisions[0].replicas
    cluster.until_weights(r1=100)
    assert cluster.request(INFER, "POST", infer_json())[0] == 200
    assert 'nv_inference_request_success{model="digits",version="1"} 1' in pages.read(replica.metrics_url)
    assert not cluster.layout.sockets.exists()


@pytest.fixture
def cluster_at_length(make_cluster, tmp_path: Path):
    home = tmp_path / ("long" * 20)
    home.mkdir()
    cluster = make_cluster(home)
    folder = replicas_folder(cluster.layout)
    try:
        yield cluster
    finally:
        cluster.close()
        shutil.rmtree(admin_socket(cluster.layout).parent)
    assert not folder.exists(), "the agent takes it away"


@pytest.mark.parametrize("flag", ["--grpc-server=grpcio", "--grpc-server grpcio"])
def test_a_runtime_that_takes_no_sockets_listens_on_ports(cluster, runtime, flag):
    cluster.start(runtime=f"{runtime} {flag}")
    cluster.apply(1, cluster.revision(1, 100))
    [replica] = cluster.until_ready(1).revisions[0].replicas
    cluster.until_weights(r1=100)
    assert replica.phase is ReplicaPhase.READY
    assert replica.metrics_url.startswith("http://127.0.0.1:")
    assert cluster.request(INFER, "POST", infer_json())[0] == 200


def test_what_a_runtime_offers_is_found_in_its_help():
    runtime = RUNTIME.split()
    said = help_of(runtime)
    assert takes_sockets(runtime, said)
    assert RELAYED in said
    assert not takes_sockets([*runtime, "--grpc-server", "grpcio"], said)
    assert RELAYED not in (other := help_of([sys.executable, str(V2_SERVER)]))
    assert not takes_sockets([sys.executable, str(V2_SERVER)], other)
    assert help_of(["/nowhere/fairlead-serve"]) == ""


def test_sockets_are_their_users_alone_and_end_with_who_holds_them(tmp_path: Path):
    layout = Layout(tmp_path / "cluster")
    first = ReplicaSockets(layout, "default.digits-00001-0")
    second = ReplicaSockets(layout, "default.digits-00001-0")  # in the place of the first, which was not removed
    other = ReplicaSockets(layout, "default.digits-00001-1")
    assert first.folder == second.folder != other.folder
    assert [path.stat().st_mode & 0o777 for path in (replicas_folder(layout), second.folder, second.path("http"))] == [
        0o700,
        0o700,
        0o600,
    ]
    assert [flag.partition("=")[0] for flag in second.flags] == [
        "--http-address",
        "--grpc-address",
        "--metrics-address",
    ]
    for each in (first, second, other):
        each.close()
        each.remove()
    assert list(replicas_folder(layout).iterdir()) == []


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({}, NetworkAccess.NONE, id="a model without code on sockets: none"),
        pytest.param({"on_sockets": False}, NetworkAccess.LISTEN, id="on ports: it listens"),
        pytest.param({"connects": True}, NetworkAccess.ALL, id="a model with egress"),
        pytest.param({"posts": True}, NetworkAccess.ALL, id="a logger or traces without a relay post"),
        pytest.param({"connects": True, "on_sockets": False}, NetworkAccess.ALL, id="a model with egress on ports"),
    ],
)
def test_the_network_of_a_replica(more: dict[str, bool], expected: NetworkAccess):
    facts = {"connects": False, "posts": False, "on_sockets": True, **more}
    assert network_of(**facts) is expected
