"""Spans and log lines of web requests and of the tasks that they cause."""

import json
import logging
from collections.abc import Iterator

import pytest
from celery import Celery
from django.test import Client

from common.http import request_id
from common.log_fields import FieldsFilter
from control_plane.monitoring import tracing as tasks
from integrations.otlp.tracing import TraceIdsFilter, of_process
from serving_runtime.shared.json_log import JsonFormatter
from tests._support.collector import PARENT, TRACE_ID, TRACEPARENT, Collector, attributes, collecting
from tests.control_plane._support.workers import working


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as found:
        of_process.start(found.endpoint, "fairlead-web")
        yield found
        of_process.stop()


@pytest.mark.django_db
def test_a_request_has_a_span_of_its_callers_trace_without_its_query(client: Client, collector: Collector) -> None:
    headers = {"traceparent": TRACEPARENT, "x-request-id": "order-66"}
    client.get("/api/v1/services?token=flt_secret", headers=headers)
    client.get("/healthz", headers=headers)
    of_process.stop()
    resource, (span,) = collector.spans(1)
    found = attributes(span)
    assert resource["service.name"] == "fairlead-web"
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE_ID, PARENT)
    assert (found["url.path"], found["fairlead.request_id"]) == ("/api/v1/services", "order-66")
    assert "secret" not in str(span)


@pytest.mark.django_db
def test_a_request_is_one_json_line_without_its_query(
    client: Client, settings: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    settings.LOG_FORMAT = "json"  # type: ignore[attr-defined]
    caplog.set_level(logging.INFO)
    client.get("/api/v1/nope%0Aforged%1b?token=flt_secret", headers={"x-request-id": "order-66"})
    (record,) = [each for each in caplog.records if each.name == "control_plane.monitoring.requests"]
    (line,) = JsonFormatter().format(record).splitlines()
    found = json.loads(line)
    assert (found["call"], found["status"]) == ("GET /api/v1/nope\nforged\x1b", 404)
    assert "secret" not in line


def test_a_task_continues_the_trace_of_its_request_and_logs_both(collector: Collector) -> None:
    assert tasks is not None
    app = Celery("traces-test", broker="memory://", set_as_current=False)
    app.conf.task_ignore_result = True
    records: list[logging.LogRecord] = []

    @app.task(name="work")
    def work() -> None:
        record = logging.makeLogRecord({"msg": "working"})
        for each in (FieldsFilter(), TraceIdsFilter(), request_id.RequestIdFilter()):
            each.filter(record)
        records.append(record)

    with working(app, pool="solo", shutdown_timeout=60):
        token = request_id.begin("order-66")
        with of_process.span("request", caller={"traceparent": TRACEPARENT}):
            app.send_task("work")
        request_id.end(token)
        app.send_task("work")  # of the schedule
        spans = collector.until("request", "work")
    assert spans["work"].trace_id.hex() == TRACE_ID
    assert spans["work"].parent_span_id == spans["request"].span_id
    line = json.loads(JsonFormatter().format(records[0]))
    assert (line["task"], line["request_id"], line["trace_id"]) == ("work", "order-66", TRACE_ID)
