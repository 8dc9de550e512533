"""Queries to numbers: against a server of the test for what a real one seldom says, and against a real Prometheus."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import Unavailable
from integrations.metrics.prometheus import Answer, Prometheus
from tests.integrations.metrics._support.server import Server, serving, success
from tests.servers.parts import MissingPartError, free_port, skip_or_fail
from tests.servers.prometheus import prometheus


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        pytest.param(success("scalar", [1.5, "2.5"]), Answer(2.5), id="a scalar is its number"),
        pytest.param(
            success("vector", [{"metric": {}, "value": [1, "3"]}]), Answer(3.0), id="one series is its number"
        ),
        pytest.param(success("vector", []), Answer(), id="an empty vector is no data"),
        pytest.param(success("scalar", [1, "NaN"]), Answer(), id="NaN is no data"),
        pytest.param(success("scalar", [1, "+Inf"]), Answer(), id="an infinity is no data"),
        pytest.param(
            success("vector", [{"value": [1, "3"]}] * 2),
            Answer(problem="the query gives 2 series; aggregate them to one, as by sum(...)"),
            id="several series are refused",
        ),
        pytest.param(
            success("matrix", []),
            Answer(problem="the query gives a matrix; let it give one number, a scalar or one series"),
            id="a range is refused",
        ),
        pytest.param(
            success("vector", [{"metric": {}, "histogram": [1, {}]}]),
            Answer(problem="the query gives a histogram; let it give one number, as by histogram_quantile(...)"),
            id="a native histogram is refused",
        ),
        pytest.param(
            success("vector", [{"value": "x"}]),
            Answer(problem="the answer has another form than Prometheus gives"),
            id="an odd sample is no crash",
        ),
        pytest.param(
            success("vector", [{"value": [1, "3"], "metric": {"x": "y" * 1024 * 1024}}]),
            Answer(problem="the answer is larger than 1048576 bytes; let the query give one number"),
            id="a huge answer is given up",
        ),
    ],
)
def test_an_answer_is_read(body: bytes, answer: Answer) -> None:
    server = Server(body=body)
    with serving(server) as prometheus:
        assert prometheus.ask(["up", "down"]) == (answer, answer)
    assert sorted(server.asked) == ["down", "up"]
    assert server.authorization == ["Bearer s3cret"] * 2


@pytest.mark.parametrize("status", [400, 422])
def test_a_query_at_fault_is_told_in_prometheus_words(status: int) -> None:
    body = json.dumps({"status": "error", "errorType": "bad_data", "error": "1:3: parse error: unclosed"}).encode()
    with serving(Server(status=status, body=body)) as prometheus:
        assert prometheus.ask(["u("]) == (Answer(problem="Prometheus refuses the query: 1:3: parse error: unclosed"),)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        pytest.param(
            401, b"", "answers 401; set FAIRLEAD_PROMETHEUS_TOKEN to a token that may query it", id="no token"
        ),
        pytest.param(503, b'{"status":"error","error":"busy"}', "answers 503: busy", id="overloaded"),
        pytest.param(404, b"<html>", "answers 404 and nothing that Prometheus says", id="not Prometheus"),
        pytest.param(200, b"[[[", "answers 200 and nothing that Prometheus says", id="no JSON"),
        pytest.param(302, b"", "answers 302 and nothing that Prometheus says", id="redirects are not followed"),
    ],
)
def test_a_server_that_cannot_be_asked_is_an_outage(status: int, body: bytes, said: str) -> None:
    server = Server(status=status, body=body)
    with serving(server) as prometheus, pytest.raises(Unavailable) as raised:
        prometheus.ask(["up"])
    assert raised.value.message.startswith(f"Prometheus at {server.url} {said}")


def test_a_cluster_s_prometheus_gets_its_tenant_and_errors_name_the_cluster() -> None:
    server = Server(body=success("scalar", [1, "1"]))
    with serving(server) as prometheus:
        assert replace(prometheus, tenant="eu|us").ask(["up"]) == (Answer(1.0),)
        assert prometheus.ask(["up"]) == (Answer(1.0),)
        server.status = 403
        with pytest.raises(Unavailable) as raised:
            replace(prometheus, cluster="production").ask(["up"])
    assert server.tenants[:2] == ["eu|us", None]
    assert raised.value.message == (
        f"Prometheus of cluster production at {server.url} answers 403; set prometheus.token of the cluster file to a "
        "token that may query it"
    )


def test_nobody_there_is_an_outage() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Unavailable, match=f"^Prometheus at {url} does not answer: "):
        Prometheus(url).ask(["up"])


def test_an_answer_that_drips_is_given_up_at_the_deadline() -> None:
    with serving(Server(body=success("scalar", [1, "1"]) * 1000, drip=True)) as prometheus:
        began = time.monotonic()
        with pytest.raises(Unavailable, match=r"no whole answer within 0\.3 s"):
            Prometheus(prometheus.url, timeout_s=0.3).ask(["up"])
        assert time.monotonic() - began < 60  # the whole answer takes hours


def test_a_real_prometheus_is_understood(tmp_path: Path) -> None:
    try:
        with prometheus([], tmp_path) as running:
            found = Prometheus(f"http://127.0.0.1:{running.port}").ask(
                ["40 + 2", "vector(7)", "absent(up) * 0 / 0", "up", "u(", "vector(1)[5m:1m]", "time() > bool on(x) 1"]
            )
    except MissingPartError as missing:
        skip_or_fail(missing)
    assert found[:4] == (Answer(42.0), Answer(7.0), Answer(), Answer())
    assert "unclosed left parenthesis" in found[4].problem
    assert found[5].problem == "the query gives a matrix; let it give one number, a scalar or one series"
    assert found[6].problem.startswith("Prometheus refuses the query: ")
