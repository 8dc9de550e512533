"""A client's trace on its way through the real gateway to the real runtime, in spans and in log lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests._support.collector import PARENT, TRACE_ID, TRACEPARENT, UNSAMPLED, attributes, collecting
from tests.integrations._support.runtimes import RUNTIME, infer_json, until

INFER = "/serving/default/digits/v2/models/digits/infer"
HOSTILE = 'a"}\t{"level": "CRITICAL"}'


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a log, each of which is JSON."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_clients_trace_and_request_id_reach_replica_and_logs(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv("FAIRLEAD_OTLP_ENDPOINT", collector.endpoint)
        monkeypatch.setenv("FAIRLEAD_LOG_FORMAT", "json")
        cluster.start(runtime=f"{RUNTIME} --log-verbose=1")
        cluster.apply(1, cluster.revision(1, 100))
        cluster.until_ready(1)
        cluster.until_weights(r1=100)
        for trace, request in ((UNSAMPLED, HOSTILE), (TRACEPARENT, "order-66")):
            answer = cluster.request(INFER, "POST", infer_json(), traceparent=trace, x_request_id=request)
            assert answer[0] == 200
        span = collector.until("InferRequest")["InferRequest"]
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE_ID, PARENT)
        assert attributes(span)["triton.request_id"] == "order-66"

        requests = [each for each in lines(cluster.layout.logs / "default.digits-00001-0.log") if "call" in each]
        infers = [each for each in requests if "infer" in each["call"]]
        assert [each.get("request_id") for each in infers] == [None, "order-66"]
        assert {each["trace_id"] for each in infers} == {TRACE_ID}
        assert lines(cluster.home / "agent.log")

        def logged() -> list[dict[str, Any]]:
            files = (cluster.layout.home / "cluster" / "access-log").glob("*.log")
            return [each for file in files for each in lines(file) if each["request_id"] == "order-66"]

        (line,) = until(logged, "the gateway's access log has the request")
        assert line["traceparent"] == TRACEPARENT
