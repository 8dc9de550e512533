"""A hard limit of requests at once in each replica, over HTTP and gRPC together, with real Envoy and real runtimes."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from prometheus_client.parser import text_string_to_metric_families

from integrations.metrics.pages import read

LIMIT = 2


def slow_model() -> bytes:
    """Return a model that keeps a core busy for tens of milliseconds, on a fast one too."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 4]) for name in "xy")
    matrix = numpy_helper.from_array(np.full((1500, 1500), 0.001, np.float32), "matrix")
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=0),
        helper.make_node("Add", ["matrix", "mean"], ["sum"]),
        helper.make_node("MatMul", ["sum", "sum"], ["product"]),
        helper.make_node("ReduceMean", ["product"], ["work"], keepdims=0),
        helper.make_node("Add", ["x", "work"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "slow", [x], [y], [matrix])
    opset = helper.make_opsetid("", 17)
    return bytes(helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString())


def gauges(page: str) -> dict[str, float]:
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name in ("fairlead_inflight_requests", "nv_inference_pending_request_count")
    }


def test_further_requests_wait_and_none_fails(cluster, traffic, runtime, eventually):
    cluster.start(runtime=runtime)
    cluster.apply(1, cluster.revision(1, 100, content=slow_model(), max_concurrent_requests=LIMIT))
    [replica] = cluster.until_ready(1).revisions[0].replicas
    cluster.until_weights(r1=100)
    pages = []

    def all_are_there() -> bool:
        pages.append(gauges(read(replica.metrics_url)))
        return pages[-1]["fairlead_inflight_requests"] == 2 * 4

    def queue_is_full() -> bool:
        all_are_there()
        return pages[-1]["nv_inference_pending_request_count"] == LIMIT - 1

    with traffic(cluster.url, clients=4, pause_s=0) as sent:  # four over HTTP and four over gRPC
        eventually(all_are_there, "eight requests are in flight")
        eventually(queue_is_full, "one request runs and the rest of the limit is in the model's queue")
        for _ in range(20):
            all_are_there()
            sent.until_sent(1)
    assert sent.failures == []
    # One instance runs one request, for a moment none between two: the queue never holds more than the limit.
    assert LIMIT - 1 <= max(page["nv_inference_pending_request_count"] for page in pages) <= LIMIT


def test_who_finds_too_many_waiting_gets_a_503_that_says_so(cluster, traffic, runtime, eventually):
    cluster.start(runtime=runtime)
    cluster.apply(1, cluster.revision(1, 100, content=slow_model(), max_concurrent_requests=1))
    cluster.until_ready(1)
    cluster.until_weights(r1=100)
    with traffic(cluster.url, clients=8) as sent:
        eventually(lambda: {each.split()[0] for each in sent.failures} == {"HTTP", "gRPC"}, "some were refused")
        sent.until_sent(20)
    http = [failure for failure in sent.failures if failure.startswith("HTTP")]
    assert all(failure.startswith("HTTP 503 ") for failure in http)
    assert all("as many as --max-concurrent-requests allows, and 10 wait" in failure for failure in sent.failures)
    assert all("UNAVAILABLE" in failure for failure in sent.failures if failure not in http)
    assert any(not failure for _, failure in sent.outcomes), "others were answered"
