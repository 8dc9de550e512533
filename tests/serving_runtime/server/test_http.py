"""The V2 paths over HTTP, as curl sees them."""

import httpx
import pytest

from tests.serving_runtime._support.processes import ServerProcess

ONES = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 1, 1, 1]}]}


@pytest.mark.parametrize(
    ("path", "status", "part"),
    [
        ("/v2/health/live", 200, {"live": True}),
        ("/v2/health/ready", 200, {"ready": True}),
        ("/v2", 200, {"name": "fairlead"}),
        ("/v2/", 200, {"name": "fairlead"}),
        ("/v2/models/versions/ready", 200, {"ready": True}),
        ("/v2/models/versions/versions/1/ready", 200, {"ready": True}),
        ("/v2/models/versions/versions/2/ready", 404, {"error": "model 'versions' has no version '2'; it serves 1, 3"}),
        ("/v2/models/nobody/ready", 404, {"error": "unknown model 'nobody' is not found"}),
        ("/v2/models/nobody", 404, {"error": "unknown model 'nobody' is not found"}),
        ("/v2/models/versions?x=1", 200, {"name": "versions", "versions": ["1", "3"]}),
        ("/v2/models/versions/config", 200, {"name": "versions", "backend": "onnxruntime"}),
        ("/v2/models/versions/versions/3/config", 200, {"name": "versions", "max_batch_size": 4}),
        ("/v2/models/versions/else", 404, {"error": "there is nothing at /v2/models/versions/else"}),
        ("/v2/models/versions/versions", 404, {"error": "there is nothing at /v2/models/versions/versions"}),
        ("/v2/models/a/b/c/d/e", 404, {"error": "there is nothing at /v2/models/a/b/c/d/e"}),
        ("/", 404, {"error": "there is nothing at /"}),
        ("/metrics", 404, {"error": "there is nothing at /metrics"}),
        ("/v2/models/versions/infer", 405, {"error": "this path takes POST only"}),
        ("/v2/repository/index", 405, {"error": "this path takes POST only"}),
    ],
)
def test_get(shared: ServerProcess, path: str, status: int, part: dict[str, object]) -> None:
    answer = httpx.get(shared.url + path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert part.items() <= answer.json().items()


@pytest.mark.feature("P15")
def test_the_models_that_are_ready(shared: ServerProcess) -> None:
    for path in ("/v2/models", "/v2/models/"):
        names = httpx.get(shared.url + path).json()["models"]
        assert names == sorted(set(names))
        assert {"versions", "mlp", "identity_bytes"} <= set(names)


@pytest.mark.feature("P8")
def test_infer_by_version_in_the_url(shared: ServerProcess) -> None:
    for path, version, width in (("", "3", 3), ("/versions/1", "1", 2), ("/versions/3", "3", 3)):
        answer = httpx.post(f"{shared.url}/v2/models/versions{path}/infer", json=ONES).json()
        assert (answer["model_name"], answer["model_version"]) == ("versions", version)
        assert answer["outputs"][0]["shape"] == [1, width]
    answer = httpx.post(f"{shared.url}/v2/models/versions/versions/2/infer", json=ONES)
    assert answer.status_code == 404


def test_infer_by_an_escaped_path_and_with_a_query(shared: ServerProcess) -> None:
    answer = httpx.post(f"{shared.url}/v2/models/%76ersions/infer?trace=no", json=ONES)
    assert answer.json()["model_name"] == "versions"


def test_the_repository_index(shared: ServerProcess) -> None:
    entries = httpx.post(f"{shared.url}/v2/repository/index").json()
    assert {"name": "versions", "version": "1", "state": "READY", "reason": ""} in entries
    assert httpx.post(f"{shared.url}/v2/repository/index", json={"ready": True}).json() == entries
    answer = httpx.post(f"{shared.url}/v2/repository/index", json={"ready": "yes"})
    assert answer.status_code == 400


@pytest.mark.feature("M1", "M2")
def test_requests_and_refusals_show_in_the_metrics(shared: ServerProcess) -> None:
    labels = {"model": "versions", "version": "1"}
    names = ("nv_inference_request_success", "nv_inference_request_failure", "nv_inference_count")
    before = [shared.metric(name, **labels) for name in names]
    histogram = shared.metric("fairlead_inference_request_duration_us_count", **labels)
    url = f"{shared.url}/v2/models/versions/versions/1/infer"
    two_rows = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 4], "data": [1.5] * 8}]}
    assert httpx.post(url, json=two_rows).status_code == 200
    assert httpx.post(url, json={"inputs": [{**ONES["inputs"][0], "name": "z"}]}).status_code == 400
    after = [shared.metric(name, **labels) for name in names]
    assert [new - old for new, old in zip(after, before, strict=True)] == [1, 1, 2]
    assert shared.metric("fairlead_inference_request_duration_us_count", **labels) == histogram + 1
    assert shared.metric("fairlead_inference_request_duration_us_bucket", **labels, le="+Inf") == histogram + 1
    assert shared.metric("fairlead_inflight_requests") == 0
    assert shared.metric("process_start_time_seconds") > 1_700_000_000


def test_the_metrics_port_has_nothing_else(shared: ServerProcess) -> None:
    answer = httpx.get(f"http://127.0.0.1:{shared.metrics}/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert httpx.get(f"http://127.0.0.1:{shared.metrics}/v2").status_code == 404
    assert httpx.post(f"http://127.0.0.1:{shared.metrics}/metrics").status_code == 405
