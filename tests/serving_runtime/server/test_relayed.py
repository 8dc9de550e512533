"""A real server whose logger and traces go through a real relay: it knows their hosts by names that nobody resolves."""

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from integrations.relay.start import Target
from serving_runtime.shared.egress import networks
from tests.integrations._support.certificates import certified
from tests.integrations._support.relays import relaying
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.event_receiver import Receiver, receiving
from tests.serving_runtime._support.processes import ServerProcess, server

HOST = "receiver.example"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    onnx_models.mlp(onnx_models.configure(root / "mlp", "max_batch_size: 8") / "1" / "model.onnx")
    return root


@contextmanager
def behind_a_relay(folder: Path, scheme: str, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Yield a receiver; `folder`/relay leads to it, and over https its certificate is for `name`."""
    context = None
    if scheme == "https":
        certificate, key = certified(folder, name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificate))
    # The relay is the way, whatever a proxy of the environment could do.
    monkeypatch.setenv(f"{scheme}_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with (
        receiving(context) as receiver,
        relaying(folder, Target("127.0.0.1", receiver.server_port, networks("127.0.0.0/8"))),
    ):
        yield receiver


def infer(target: ServerProcess) -> None:
    x = {"name": "x", "shape": [1, 8], "datatype": "FP32", "data": [0.5] * 8}
    url = f"{target.url}/v2/models/mlp/infer"
    assert httpx.post(url, json={"inputs": [x]}, timeout=30, trust_env=False).status_code == 200


def span_names(collector: Receiver) -> list[str]:
    found = [ExportTraceServiceRequest.FromString(body) for _, body in list(collector.posts)]
    return [span.name for each in found for group in each.resource_spans for s in group.scope_spans for span in s.spans]


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_logger_posts_through_it(
    repository: Path, tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with behind_a_relay(tmp_path, scheme, HOST, monkeypatch) as receiver:
        url = f"{scheme}://{HOST}:{receiver.server_port}/events"
        flags = (f"--payload-logger={url}", f"--payload-logger-socket={tmp_path / 'relay'}")
        # Its networks would refuse any address; with a socket it is for the relay to say.
        with server(repository, *flags, "--payload-logger-allowed-networks=", scratch=tmp_path) as target:
            infer(target)
            metric = "fairlead_payload_logger_events_total"
            until(lambda: target.metric(metric, result="written") == 2, target.metrics_page())
    assert {headers["host"] for headers, _ in receiver.posts} == {f"{HOST}:{receiver.server_port}"}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_traces_go_through_it(repository: Path, tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with behind_a_relay(tmp_path, scheme, HOST, monkeypatch) as collector:
        given = (
            *("mode=opentelemetry", "level=TIMESTAMPS", "rate=1", "opentelemetry,bsp_schedule_delay=20"),
            f"opentelemetry,url={scheme}://{HOST}:{collector.server_port}/v1/traces",
            f"opentelemetry,socket={tmp_path / 'relay'}",
        )
        with server(repository, *[f"--trace-config={each}" for each in given], scratch=tmp_path) as target:
            infer(target)
            until(lambda: sorted(span_names(collector)) == ["InferRequest", "compute", "queue"], "spans come")


def test_a_relay_that_leads_to_another_host_is_found_out_by_tls(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with behind_a_relay(tmp_path, "https", "another.example", monkeypatch) as receiver:
        url = f"https://{HOST}:{receiver.server_port}/events"
        flags = (f"--payload-logger={url}", f"--payload-logger-socket={tmp_path / 'relay'}")
        with server(repository, *flags, scratch=tmp_path) as target:
            infer(target)
            metric = "fairlead_payload_logger_events_total"
            until(lambda: target.metric(metric, result="failed") == 2, target.metrics_page())
    assert receiver.posts == []
