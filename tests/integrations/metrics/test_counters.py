"""Pages to samples. What real processes say is read in test_gateway.py and in the agent's tests."""

from dataclasses import replace

import pytest

from common.errors import Unavailable
from integrations.clusters.base import (
    BatchTime,
    ModelTime,
    Observed,
    ObservedReplica,
    ObservedRevision,
    ReplicaPhase,
    Sample,
)
from integrations.metrics.counters import collect, gateway_samples, replica_sample

REPLICA = ObservedReplica("digits-00001-0", ReplicaPhase.READY)
OBSERVED = Observed(
    "default",
    "digits",
    1,
    (
        ObservedRevision("digits-00001", 90, gateway_since=100.0),
        ObservedRevision("digits-00002", 10, gateway_since=300.0),
        ObservedRevision("digits-00003", 0),
    ),
)


def test_replica_counts_requests_of_its_model_and_sums_up_what_waits_and_runs():
    page = """
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1700000000.25
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="a",version="1"} 7
nv_inference_request_success{model="b",version="1"} 3
# TYPE nv_inference_request_failure counter
nv_inference_request_failure{model="a",version="1",reason="REJECTED"} 1
nv_inference_request_failure{model="a",version="1",reason="BACKEND"} 2
nv_inference_request_failure{model="a",version="1",reason="CANCELED"} 4
nv_inference_request_failure{model="a",version="1",reason="OTHER"} 8
# TYPE nv_inference_queue_duration_us counter
nv_inference_queue_duration_us{model="a",version="1"} 1200
nv_inference_queue_duration_us{model="b",version="1"} 34
# TYPE fairlead_batch_rows counter
fairlead_batch_rows{model="a",version="1",batch_size="1"} 5
fairlead_batch_rows{model="a",version="1",batch_size="8"} 16
fairlead_batch_rows{model="b",version="1",batch_size="1"} 2
# TYPE fairlead_batch_duration_us counter
fairlead_batch_duration_us{model="a",version="1",batch_size="1"} 500
fairlead_batch_duration_us{model="a",version="1",batch_size="8"} 900
fairlead_batch_duration_us{model="b",version="1",batch_size="1"} 30
# TYPE fairlead_inflight_requests gauge
fairlead_inflight_requests{model="a",version="1"} 4
fairlead_inflight_requests{model="b",version="1"} 1
# TYPE fairlead_inference_request_duration_us histogram
fairlead_inference_request_duration_us_bucket{model="a",version="1",le="50"} 1
fairlead_inference_request_duration_us_bucket{model="a",version="1",le="100"} 4
fairlead_inference_request_duration_us_bucket{model="a",version="1",le="+Inf"} 6
fairlead_inference_request_duration_us_sum{model="a",version="1"} 900
fairlead_inference_request_duration_us_count{model="a",version="1"} 6
fairlead_inference_request_duration_us_bucket{model="b",version="1",le="50"} 0
fairlead_inference_request_duration_us_bucket{model="b",version="1",le="100"} 2
fairlead_inference_request_duration_us_bucket{model="b",version="1",le="+Inf"} 2
"""
    assert replica_sample(ObservedRevision("digits-00001", 100), REPLICA, page, "a") == Sample(
        source="digits-00001-0",
        revision="digits-00001",
        started_at=1700000000.25,
        requests=22,
        client_errors=12,
        server_errors=3,
        latency_edges_us=(50.0, 100.0),
        latency_counts=(1, 3, 2),
        in_flight=5,
        queue_us=1234,
        batches=(BatchTime(1, 7, 530), BatchTime(8, 16, 900)),
    )


def test_replica_without_a_start_time_is_refused():
    with pytest.raises(Unavailable, match="process_start_time_seconds"):
        replica_sample(ObservedRevision("digits-00001", 100), REPLICA, "nv_inference_count 1\n", "digits")


def page(started_at: str, *, names: tuple[str, ...] = ("digits-00001", "digits-00002")) -> str:
    lines = []
    for name in names:
        for use in ("http", "grpc"):
            labels = f'fairlead_started_at="{started_at}",envoy_cluster_name="default/{name}/{use}"'
            lines.append(f"envoy_cluster_upstream_rq_total{{{labels}}} 99")
            lines.append(f'envoy_cluster_upstream_rq_xx{{envoy_response_code_class="2",{labels}}} 50')
            lines.append(f'envoy_cluster_upstream_rq_xx{{envoy_response_code_class="4",{labels}}} 2')
            lines.append(f'envoy_cluster_upstream_rq_xx{{envoy_response_code_class="5",{labels}}} 1')
        for code, count in {0: 40, 3: 4, 8: 1, 13: 6, 14: 7}.items():
            lines.append(f"envoy_cluster_grpc_ModelInfer_{code}{{{labels}}} {count}")
    return "\n".join(lines) + "\n"


def test_gateway_counts_http_by_status_and_grpc_by_grpc_status():
    first, second = gateway_samples(OBSERVED, page("200"))
    assert (first.source, first.revision, first.requests) == ("gateway", "digits-00001", 53 + 58)
    assert (first.client_errors, first.server_errors) == (2 + 5, 1 + 13)
    assert (first.latency_edges_us, first.latency_counts) == ((), ())
    assert second.revision == "digits-00002"


def test_counters_began_when_envoy_did_or_with_the_revision_whichever_is_later():
    assert [sample.started_at for sample in gateway_samples(OBSERVED, page("200"))] == [200.0, 300.0]


def test_revision_the_page_does_not_know_is_no_zero():
    with pytest.raises(Unavailable, match="no counters for revision digits-00002"):
        gateway_samples(OBSERVED, page("200", names=("digits-00001",)))


def test_nothing_that_serves_gives_no_samples():
    assert collect(Observed("default", "digits")) == ()


def test_replica_that_does_not_answer_is_unavailable():
    replica = ObservedReplica("r-0", ReplicaPhase.READY, metrics_url="http://127.0.0.1:1/metrics")
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1/metrics cannot be read"):
        collect(Observed("default", "digits", 1, (ObservedRevision("r", 100, (replica,)),)))


COUNTED = """process_start_time_seconds 100
nv_inference_request_success{model="digits",version="2"} 7
"""


def counted_by_replicas(*replicas: ObservedReplica) -> Observed:
    revision = ObservedRevision("digits-00002", 100, replicas)
    return Observed("default", "digits", 1, (revision,), gateway_counts=False)


def test_replicas_stand_for_a_gateway_that_does_not_count():
    replica = ObservedReplica("pod", ReplicaPhase.READY, restarts=3, metrics_url="http://192.0.2.1/metrics")
    (sample,) = collect(counted_by_replicas(replica), lambda *_: COUNTED)
    assert (sample.replaces_gateway, sample.requests, sample.restarts) == (True, 7, 3)


def test_only_a_replica_that_takes_no_requests_may_be_silent():
    def page_of(namespace: str, replica: ObservedReplica) -> str:
        if replica.name == "silent":
            raise Unavailable(f"{namespace}/{replica.name} cannot be read")
        return COUNTED

    serving = ObservedReplica("pod", ReplicaPhase.READY, metrics_url="http://192.0.2.1/metrics")
    for phase in (ReplicaPhase.DRAINING, ReplicaPhase.STARTING, ReplicaPhase.BACKING_OFF):
        silent = ObservedReplica("silent", phase, metrics_url="http://192.0.2.2/metrics")
        assert [each.source for each in collect(counted_by_replicas(serving, silent), page_of)] == ["pod"]
    with pytest.raises(Unavailable, match="default/silent cannot be read"):
        collect(counted_by_replicas(serving, replace(silent, phase=ReplicaPhase.READY)), page_of)


def test_of_a_pools_page_a_service_has_its_versions_rows_and_the_pool_those_of_all() -> None:
    page = "process_start_time_seconds 5\n"
    for model, version, requests in (("ns.a", 1, 10), ("ns.a", 2, 20), ("ns.b", 1, 40)):
        labels = f'{{model="{model}",version="{version}"}}'
        page += f"nv_inference_request_success{labels} {requests}\nfairlead_inflight_requests{labels} {requests}\n"
    pooled = ObservedRevision("a-00002", 100, pooled_as="ns.a@2")
    found = replica_sample(pooled, REPLICA, page, "a")
    assert (found.requests, found.in_flight, found.started_at) == (20, 20, 5)
    pool = replica_sample(ObservedRevision("warm-00001", 100, is_pool=True), REPLICA, page, "warm")
    assert (pool.requests, pool.in_flight) == (70, 70)


def test_a_pools_page_has_what_each_model_takes() -> None:
    page = "process_start_time_seconds 5\n"
    for model, version, busy in (("ns.a", 1, 10), ("ns.a", 2, 20), ("ns.b", 1, 40), ("ns.idle", 1, 0)):
        labels = f'{{model="{model}",version="{version}"}}'
        page += f"nv_inference_compute_infer_duration_us{labels} {busy}\nfairlead_model_memory_bytes{labels} 7\n"
    page += 'nv_inference_compute_infer_duration_us{model="ns.\\"evil",version="1"} 9\n'
    pool = replica_sample(ObservedRevision("warm-00001", 100, is_pool=True), REPLICA, page, "warm")
    assert pool.models == (ModelTime("ns.a", 30, 14), ModelTime("ns.b", 40, 7))
    assert replica_sample(ObservedRevision("a-00002", 100, pooled_as="ns.a@2"), REPLICA, page, "a").models == ()
