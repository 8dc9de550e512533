"""The address of a collector, and how its outages are reported."""

import logging
from collections.abc import Iterator

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from serving_runtime.shared.otlp import ReportedExporter, traces_url
from tests._support.collector import collecting


@pytest.mark.parametrize("endpoint", ["http://collector:4318", "https://[::1]:4318/", "http://host/otlp"])
def test_spans_go_below_the_endpoint(endpoint: str) -> None:
    assert traces_url(endpoint) == endpoint.rstrip("/") + "/v1/traces"


@pytest.mark.parametrize(
    "endpoint",
    ["collector:4318", "grpc://collector", "http://", "http://me:secret@collector", "http://c/?key=1", "http://c\n"],
)
def test_what_is_no_endpoint_is_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match="expected the base address of a collector"):
        traces_url(endpoint)


@pytest.fixture
def span() -> Iterator[ReadableSpan]:
    provider = TracerProvider(shutdown_on_exit=False)
    with provider.get_tracer("test").start_as_current_span("done") as found:
        pass
    assert isinstance(found, ReadableSpan)
    yield found
    provider.shutdown()


def test_an_outage_is_reported_when_it_begins_and_when_it_ends(
    span: ReadableSpan, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with collecting() as collector:
        port = collector.port
        exporter = ReportedExporter(OTLPSpanExporter(f"{collector.endpoint}/v1/traces", timeout=2), collector.url)
        exporter.export([span])
    for _ in range(2):
        exporter.export([span])
    with collecting(port) as collector:
        for _ in range(2):
            exporter.export([span])
        collector.spans(2)
    lines = [record.getMessage() for record in caplog.records if record.name == "serving_runtime.shared.otlp"]
    assert len(lines) == 2
    assert "takes no spans" in lines[0]
    assert "refused" in lines[0]
    assert lines[1].endswith("takes spans again")
    exporter.shutdown()
