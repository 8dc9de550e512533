"""Spans of the control plane at a real collector: which are exported, and whose trace they continue."""

from collections.abc import Iterator

import pytest

from integrations.otlp.tracing import SERVER, Tracing
from tests._support.collector import PARENT, TRACE_ID, TRACEPARENT, Collector, attributes, collecting


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture
def tracing(collector: Collector) -> Iterator[Tracing]:
    found = Tracing()
    found.start(collector.endpoint, "fairlead-test")
    yield found
    found.stop()


def test_a_request_continues_its_callers_trace_and_its_calls_are_children(
    tracing: Tracing, collector: Collector
) -> None:
    with tracing.call("GET", {}):
        assert tracing.ids() == ("", "")  # a call of its own makes no trace
    with tracing.span("request", SERVER, {"url.path": "/"}, caller={"traceparent": TRACEPARENT}) as span:
        sent = tracing.headers()["traceparent"]
        with tracing.call("GET", {"server.address": "elsewhere"}):
            pass
        with tracing.span("reconcile", if_kept=True):
            pass
        span.fail("status 500")
    tracing.stop()
    resource, spans = collector.spans(3)
    by_name = {each.name: each for each in spans}
    request = by_name["request"]
    assert resource["service.name"] == "fairlead-test"
    assert {each.trace_id.hex() for each in spans} == {TRACE_ID}
    assert (request.parent_span_id.hex(), request.status.message) == (PARENT, "status 500")
    assert by_name["GET"].parent_span_id == by_name["reconcile"].parent_span_id == request.span_id
    assert sent == f"00-{TRACE_ID}-{request.span_id.hex()}-01"


def test_a_trace_of_its_own_is_exported_only_where_it_is_kept_or_fails(tracing: Tracing, collector: Collector) -> None:
    with tracing.span("settled", if_kept=True), tracing.call("GET", {}):
        assert tracing.headers() == {}  # nothing may continue what may not be exported
    with tracing.span("kept", if_kept=True) as span, tracing.call("observe", {}) as call:
        span.set("fairlead.outcome", "done")
        call.keep()
    with pytest.raises(RuntimeError), tracing.span("failed", if_kept=True):
        raise RuntimeError("away")
    tracing.stop()
    _, spans = collector.spans(3)
    by_name = {each.name: each for each in spans}
    assert by_name.keys() == {"kept", "observe", "failed"}
    assert attributes(by_name["kept"]) == {"fairlead.outcome": "done"}
    assert by_name["failed"].status.message == "RuntimeError: away"


def test_without_a_collector_blocks_just_run() -> None:
    tracing = Tracing()
    tracing.start("", "fairlead-test")
    with tracing.span("request", if_kept=True) as span, tracing.call("GET", {}):
        span.set("a", 1)
        span.keep()
        assert (tracing.headers(), tracing.ids(), tracing.is_on) == ({}, ("", ""), False)
