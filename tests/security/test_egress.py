"""Users choose where webhooks and payload loggers post. What trusts its neighbours must not be reachable that way."""

import json
import os
import shutil
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from common.errors import Unavailable
from integrations import outbound
from integrations.clusters.base import Logged, Logger
from integrations.metrics.pages import read
from serving_runtime.shared.egress import EgressRefusedError, networks, permitted
from serving_runtime.telemetry.tap.delivering import LoggerSink
from serving_runtime.telemetry.tap.sinks import Event, SinkError
from tests.integrations._support.runtimes import RUNTIME, Cluster, until
from tests.serving_runtime._support.event_receiver import receiving

METADATA = {
    "AWS, GCP, Azure": "169.254.169.254",
    "AWS over IPv6": "fd00:ec2::254",
    "credentials of ECS tasks": "169.254.170.2",
    "identities of EKS pods": "fd00:ec2::23",
    "GCP over IPv6": "fd20:ce::254",
    "Azure's WireServer": "168.63.129.16",
    "Alibaba": "100.100.100.200",
    "Oracle": "192.0.0.192",
    "Oracle over IPv6": "fd00:c1::a9fe:a9fe",
}
INTERNAL = {
    "loopback": "127.0.0.1",
    "more loopback": "127.8.9.1",
    "loopback over IPv6": "::1",
    "this host": "0.0.0.0",
    "this host over IPv6": "::",
    "private": "10.0.0.1",
    "shared": "100.64.0.1",
    "link-local": "fe80::1%lo",
    "site-local": "fec0::1",
    "unique local": "fd00::1",
    "multicast": "224.0.0.1",
    "IPv4-mapped": "::ffff:127.0.0.1",
    "IPv4-compatible": "::127.0.0.1",
    "SIIT": "::ffff:0:127.0.0.1",
    "NAT64": "64:ff9b::a00:1",
    "NAT64 to metadata": "64:ff9b::a9fe:a9fe",
    "NAT64 of its own": "64:ff9b:1::a00:1",
    "6to4": "2002:7f00:1::",
}


@pytest.mark.parametrize("address", [pytest.param(text, id=name) for name, text in {**METADATA, **INTERNAL}.items()])
def test_a_host_at_an_internal_address_is_refused_whatever_else_it_is_at(address: str) -> None:
    with pytest.raises(EgressRefusedError, match="is not a public address"):
        permitted("host.example", ["93.184.215.14", address], ())


@pytest.mark.parametrize("address", [pytest.param(text, id=name) for name, text in METADATA.items()])
def test_metadata_is_allowed_by_its_own_address_only(address: str) -> None:
    wide = networks("0.0.0.0/0,::/0,100.64.0.0/10,fc00::/7,192.0.0.0/24")
    with pytest.raises(EgressRefusedError):
        permitted("host.example", [address], wide)
    assert permitted("host.example", [address], networks(address)) == [address]


def test_a_wide_network_allows_no_loopback() -> None:
    with pytest.raises(EgressRefusedError):
        permitted("localhost", ["127.0.0.1"], networks("0.0.0.0/0"))
    assert permitted("localhost", ["127.0.0.1"], networks("127.0.0.0/8")) == ["127.0.0.1"]


def test_public_addresses_and_allowed_networks_are_reached() -> None:
    found = ["93.184.215.14", "2606:2800:21f:cb07::1", "10.1.2.3", "10.1.2.3"]
    assert permitted("host.example", found, networks("10.1.0.0/16")) == found[:3]


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "localhost", "[::ffff:7f00:1]"])
def test_spellings_of_loopback_get_nothing(host: str) -> None:
    with receiving() as victim:
        url = f"http://{host}:{victim.server_port}/quitquitquit"
        with pytest.raises(Unavailable, match="not a public address"):
            outbound.post(url, b"{}", {}, allowed=(), timeout_s=5)
        with pytest.raises(SinkError, match="not a public address"):
            post(url, "")
        assert victim.posts == []


def test_a_redirect_is_not_followed() -> None:
    with receiving() as victim, redirecting(victim.url) as url:
        with pytest.raises(SinkError, match="answered 307"):
            post(url, "127.0.0.0/8")
        assert outbound.post(url, b"{}", {}, allowed=networks("127.0.0.0/8"), timeout_s=5)[0] == 307
        assert victim.posts == []


def test_a_proxy_that_the_models_environment_names_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as victim, receiving() as receiver:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{victim.server_port}")
        post(receiver.url, "127.0.0.0/8")
        assert (len(receiver.posts), victim.posts) == (1, [])


def test_a_name_that_changes_its_meaning_after_the_check_leads_where_it_led(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rebinding: a resolver that answers otherwise the second time is the attacker's own."""
    with receiving() as receiver:
        asked = []
        known = socket.getaddrinfo

        def resolver(host: str, *arguments: object, **more: object) -> object:
            if host != "rebinding.example":
                return known(host, *arguments, **more)  # type: ignore[arg-type]
            asked.append(host)
            address = "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
            return known(address, *arguments, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(socket, "getaddrinfo", resolver)
        post(f"http://rebinding.example:{receiver.server_port}/", "127.0.0.0/8")
        (headers, _), *others = receiver.posts
    assert (others, asked) == ([], ["rebinding.example"])
    assert headers["host"] == f"rebinding.example:{receiver.server_port}"


def test_a_deployers_logger_reaches_no_port_of_the_machine(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        cluster.start(runtime=RUNTIME)
        with receiving() as victim:
            url = f"http://127.0.0.1:{victim.server_port}/quitquitquit"
            env = {"http_proxy": f"http://127.0.0.1:{victim.server_port}"}
            cluster.apply(1, cluster.revision(1, 100, logger=Logger(url, Logged.ALL), env=env))
            metrics = cluster.until_ready(1).revisions[0].replicas[0].metrics_url
            cluster.until_weights(r1=100)
            inputs = [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]
            path = "/serving/default/digits/v2/models/digits/infer"
            assert cluster.request(path, "POST", json.dumps({"inputs": inputs}).encode())[0] == 200
            until(
                lambda: 'fairlead_payload_logger_events_total{result="failed"} 2' in read(metrics),
                "both fail",
            )
            assert victim.posts == []
        gateway_process = cluster.pid("gateway")
        gateway_port = int(cluster.url.rpartition(":")[2])
        assert {port for _, port in _listening(gateway_process)} == {gateway_port}, (
            "no port leads to Envoy's admin page"
        )
        assert _listening(cluster.pid("default.digits-00001-0")) == set(), (
            "a replica is reached through the gateway only"
        )
        socket_path = cluster.layout.envoy / "admin.sock"
        assert stat.S_IMODE(socket_path.stat().st_mode) == 0o600
        assert stat.S_IMODE(socket_path.parent.stat().st_mode) == 0o700
    finally:
        cluster.close()


def test_a_long_home_gets_a_short_socket_in_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("deep" * 25)))
    monkeypatch.setenv("TMPDIR", str(short := Path(tempfile.mkdtemp())))
    home = tmp_path / ("long" * 30)
    home.mkdir()
    cluster = Cluster(home)
    try:
        cluster.start()
        folders = list(short.glob(f"fairlead-{os.getuid()}-*"))
        assert {stat.S_IMODE(each.stat().st_mode) for each in folders} == {0o700}
        (folder,) = (each for each in folders if (each / "admin.sock").exists())
        assert stat.S_IMODE((folder / "admin.sock").stat().st_mode) == 0o600
    finally:
        cluster.close()
    folder.chmod(0o755)
    # Somebody else's folder, or one that others may enter, is refused: /tmp is everybody's.
    with pytest.raises(AssertionError, match="remove it"):
        cluster.start()
    cluster.agent = None
    shutil.rmtree(short)


def post(url: str, allowed: str) -> None:
    """Post one event as a runtime does whose platform allows some networks; raises SinkError."""
    sink = LoggerSink(url, {}, networks(allowed))
    try:
        sink.write([_event()])
    finally:
        sink.close()


def _event() -> Event:
    return {
        "id": "1",
        "requestid": "1",
        "type": "org.kubeflow.serving.inference.request",
        "source": "test",
        "datacontenttype": "application/json",
        "data": {},
    }


@contextmanager
def redirecting(to: str) -> Iterator[str]:
    """Yield the URL of a server that sends everybody elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(307)
            self.send_header("location", to)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def _listening(pid: int) -> set[tuple[str, int]]:
    """Return the TCP addresses and ports on which a process listens."""
    process = Path(f"/proc/{pid}")
    own = {str(each.readlink()) for each in (process / "fd").iterdir() if each.is_symlink()}
    lines = [line.split() for name in ("tcp", "tcp6") for line in (process / "net" / name).read_text().splitlines()]
    places = [line[1].rpartition(":") for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in own]
    return {(address, int(port, 16)) for address, _, port in places}
