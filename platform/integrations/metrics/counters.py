"""Request counters of a service: what clients saw, and runtimes' latencies. Called by the reconciler's analysis.

The gateway counts what clients saw: HTTP statuses, and for gRPC the gRPC status, since HTTP says 200 there. The
runtimes measure request duration, in microsecond buckets, and how long the model ran. Where the gateway does not count
each revision's requests, the runtimes' own counters replace it; `docs/reference/kubernetes.md` says what they cannot
know. Health and metadata requests are in neither. Copies that a shadow got are counted separately in the same way, as
if clients had seen the answers.
"""

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from common.errors import Unavailable
from common.places import waiting
from integrations.clusters.base import (
    BatchTime,
    ModelTime,
    Observed,
    ObservedReplica,
    ObservedRevision,
    ReplicaPhase,
    Sample,
)
from integrations.clusters.local.envoy.names import ClusterUse, cluster_name
from integrations.metrics import pages
from integrations.metrics.recent_pages import RecentPages

Row = tuple[str, Mapping[str, str], float]

# gRPC: statuscodes.md. Codes that blame the request, or its caller as RESOURCE_EXHAUSTED (8) does: a message too large,
# or a limit of callers. Every other code but OK blames the server.
_GRPC_CLIENT_ERRORS = frozenset({1, 3, 5, 6, 7, 8, 9, 10, 11, 16})
_GRPC_STATUS = re.compile(r"envoy_cluster_grpc_ModelInfer_(\d+)$")
_HISTOGRAM = "fairlead_inference_request_duration_us_bucket"
_OF_REQUESTS = frozenset({"nv_inference_request_success", "nv_inference_request_failure", _HISTOGRAM})
_STARTED = "process_start_time_seconds"
_OF_POOL = (
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_queue_duration_us",
    "fairlead_inflight_requests",
)
_OF_POOLED_MODEL = re.compile(
    r'^(nv_inference_compute_infer_duration_us|fairlead_model_memory_bytes)\{model="([a-z0-9.-]{1,127})",version="\d{1,9}"'
    r"[^}\n]*\} (\d{1,18})(?:\.\d+)?$",
    re.ASCII | re.MULTILINE,
)
_AT_ONCE = 8

_SETTLED_AGE_S, _ROLLOUT_AGE_S = 5.0, 1.0
"""How old a page of a pool's replica may be: in a rollout less than the time between two looks, so that both count."""

PageOf = Callable[[str, ObservedReplica], str]
"""Returns a replica's page, given its namespace; raises Unavailable."""

_shared = RecentPages()


def _own_page(_namespace: str, replica: ObservedReplica) -> str:
    return pages.read(replica.metrics_url)


def collect(observed: Observed, page_of: PageOf = _own_page) -> tuple[Sample, ...]:
    """Return one sample per replica that serves, one per revision the gateway counts, one per shadow's copies.

    Args:
        page_of: the driver's `metrics_page`.

    Raises:
        Unavailable: a source cannot be read; a partial answer would look like a change of the rates. Only a replica
            that takes no requests may be silent: its counts come with a later look, or were in an earlier one.
    """
    names = {revision.name for revision in observed.revisions if revision.gateway_since is not None}
    replicas = [
        (revision, replica) for revision in observed.revisions for replica in revision.replicas if replica.metrics_url
    ]
    pool = _readers()
    age_s = _SETTLED_AGE_S if len(observed.revisions) == 1 else _ROLLOUT_AGE_S
    asked = [
        pool.submit(shared_page, page_of, observed.namespace, replica, age_s=age_s)
        if revision.pooled_as
        else pool.submit(page_of, observed.namespace, replica)
        for revision, replica in replicas
    ]
    gateway = None
    if names and observed.gateway_stats_url:
        query = {"filter": _gateway_filter(observed.namespace, names)}
        gateway = pool.submit(pages.read, observed.gateway_stats_url, query)
    with waiting():
        wait([*asked, gateway] if gateway is not None else asked)
    samples = []
    for (revision, replica), page in zip(replicas, asked, strict=True):
        try:
            sample = replica_sample(revision, replica, page.result(), observed.service)
        except Unavailable:
            if replica.phase is ReplicaPhase.READY:
                raise
            continue
        samples.append(sample if observed.gateway_counts else replace(sample, replaces_gateway=True))
    if gateway is not None:
        samples += gateway_samples(observed, gateway.result())
    return tuple(samples)


def shared_page(page_of: PageOf, namespace: str, replica: ObservedReplica, *, age_s: float = _SETTLED_AGE_S) -> str:
    """Return the page of a pool's replica, which many services share, read at most `age_s` ago; raises Unavailable."""
    # Not the namespace, since a pool's services may be of several: of a cluster's replicas each has its own URL.
    key = page_of, replica.name, replica.metrics_url, replica.started_at
    return _shared.read(key, lambda: page_of(namespace, replica), age_s=age_s)


class _OfThread(threading.local):
    """What each thread has of its own: the threads that read pages for it, which end with it."""

    readers: ThreadPoolExecutor | None = None


_of_thread = _OfThread()


def _readers() -> ThreadPoolExecutor:
    """Return the threads that read pages for this one: it has the next turns too, and new ones for each cost more."""
    if _of_thread.readers is None:
        _of_thread.readers = ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="pages")
    return _of_thread.readers


def gateway_samples(observed: Observed, page: str) -> list[Sample]:
    """Return the gateway's samples from Envoy's Prometheus page.

    Raises:
        Unavailable: the page lacks a revision that the agent reports as routed.
    """
    counters: dict[str, _GatewayCounters] = defaultdict(_GatewayCounters)
    for name, labels, value in _rows(page):
        counters[labels.get("envoy_cluster_name", "")].add(name, labels, round(value))
    samples = []
    for revision in observed.revisions:
        if revision.gateway_since is None:
            continue
        for source, uses, is_routed in (
            ("gateway", (ClusterUse.INFER, ClusterUse.GRPC), True),
            ("mirror", (ClusterUse.MIRROR_INFER, ClusterUse.MIRROR_GRPC), revision.mirror_percent > 0),
        ):
            http, grpc = (
                counters.get(cluster_name(observed.namespace, revision.name, use, revision.slept_at or 0))
                for use in uses
            )
            if http is not None and grpc is not None:
                samples.append(_gateway_sample(source, revision.name, revision.gateway_since, http, grpc))
            elif is_routed:
                raise Unavailable(
                    f"the gateway has no counters for revision {revision.name}; it has just been restarted"
                )
    return samples


def _gateway_sample(
    source: str, revision: str, since: float, http: "_GatewayCounters", grpc: "_GatewayCounters"
) -> Sample:
    return Sample(
        source=source,
        revision=revision,
        # The clusters may be younger than Envoy, Envoy younger than the observation.
        started_at=max(since, http.envoy_started_at),
        requests=http.http_requests + grpc.grpc_requests,
        client_errors=http.http_client_errors + grpc.grpc_client_errors,
        server_errors=http.http_server_errors + grpc.grpc_server_errors,
    )


class _GatewayCounters:
    """One Envoy cluster's counters, summed over the answers' codes."""

    def __init__(self) -> None:
        self.envoy_started_at = 0.0
        self.http_requests = self.http_client_errors = self.http_server_errors = 0
        self.grpc_requests = self.grpc_client_errors = self.grpc_server_errors = 0

    def add(self, name: str, labels: Mapping[str, str], value: int) -> None:
        self.envoy_started_at = float(labels.get("fairlead_started_at", self.envoy_started_at))
        if name == "envoy_cluster_upstream_rq_xx":
            code_class = labels["envoy_response_code_class"]
            self.http_requests += value if code_class in "2345" else 0
            self.http_client_errors += value if code_class == "4" else 0
            self.http_server_errors += value if code_class == "5" else 0
        elif status := _GRPC_STATUS.match(name):
            code = int(status[1])
            self.grpc_requests += value
            self.grpc_client_errors += value if code in _GRPC_CLIENT_ERRORS else 0
            self.grpc_server_errors += value if code and code not in _GRPC_CLIENT_ERRORS else 0


def replica_sample(revision: ObservedRevision, replica: ObservedReplica, page: str, model: str) -> Sample:
    """Return a runtime's sample from its Prometheus page.

    Requests are those of the model that clients name; queued and running requests are summed over all models, of which
    the others are the steps of an ensemble. A pool's page has many models: of a revision in it the rows of its version
    count, of the pool itself those of all, without latencies.

    Raises:
        Unavailable: the page does not say when the process started.
    """
    started_at: float | None = None
    success = client_errors = server_errors = in_flight = queue_us = 0
    cumulative: dict[float, int] = defaultdict(int)
    batch_rows: dict[int, int] = defaultdict(int)
    batch_us: dict[int, int] = defaultdict(int)
    for name, labels, value in _rows_of(page, model, revision):
        match name:
            case _ if name == _STARTED:
                started_at = value
            case "nv_inference_request_success":
                success += round(value)
            case "nv_inference_request_failure":
                # Triton: metrics. REJECTED is a full queue, BACKEND a model that fails; the rest is the caller's.
                if labels.get("reason") in ("REJECTED", "BACKEND"):
                    server_errors += round(value)
                else:
                    client_errors += round(value)
            case "fairlead_inflight_requests":
                in_flight += round(value)
            case "nv_inference_queue_duration_us":
                queue_us += round(value)
            case "fairlead_batch_rows":
                batch_rows[int(labels["batch_size"])] += round(value)
            case "fairlead_batch_duration_us":
                batch_us[int(labels["batch_size"])] += round(value)
            case _ if name == _HISTOGRAM:
                cumulative[float(labels["le"])] += round(value)
    if started_at is None:
        raise Unavailable(f"the metrics page of {replica.name} has no process_start_time_seconds")
    edges = sorted(cumulative)
    counts = [cumulative[edge] - (cumulative[edges[index - 1]] if index else 0) for index, edge in enumerate(edges)]
    return Sample(
        source=replica.name,
        revision=revision.name,
        started_at=started_at,
        requests=success + client_errors + server_errors,
        client_errors=client_errors,
        server_errors=server_errors,
        latency_edges_us=tuple(edges[:-1]),
        latency_counts=tuple(counts),
        in_flight=in_flight,
        queue_us=queue_us,
        batches=tuple(BatchTime(size, batch_rows[size], batch_us[size]) for size in sorted(batch_rows)),
        restarts=replica.restarts,
        models=_models(page) if revision.is_pool else (),
    )


def _models(page: str) -> tuple[ModelTime, ...]:
    """Return the models of a pool's page that have computed, by one pass over it: it may have 500 versions."""
    busy_us: dict[str, int] = defaultdict(int)
    memory_bytes: dict[str, int] = defaultdict(int)
    for name, model, value in _OF_POOLED_MODEL.findall(page):
        (busy_us if name.startswith("nv") else memory_bytes)[model] += int(value)
    return tuple(ModelTime(model, each, memory_bytes[model]) for model, each in busy_us.items() if each)


def _rows_of(page: str, model: str, revision: ObservedRevision) -> Iterable[Row]:
    """Yield the rows of a runtime's page, without request metrics of models other than the revision's."""
    if revision.pooled_as:
        pooled, _, version = revision.pooled_as.rpartition("@")
        mine = f'model="{pooled}",version="{version}"'
        yield from _rows(_lines(page, lambda line: mine in line or line.startswith(_STARTED)))
    elif revision.is_pool:
        yield from _rows(_lines(page, lambda line: line.startswith((_STARTED, *_OF_POOL))))
    else:
        for name, labels, value in _rows(page):
            if name not in _OF_REQUESTS or labels.get("model") == model:
                yield name, labels, value


def _lines(page: str, is_needed: Callable[[str], bool]) -> str:
    """Return some lines of a page: parsing all those of a pool would take most of a turn."""
    return "\n".join((*filter(is_needed, page.splitlines()), ""))


def _gateway_filter(namespace: str, revisions: Iterable[str]) -> str:
    """Return Envoy's name filter for what `gateway_samples` reads; its whole page has thousands of lines."""
    names = "|".join(re.escape(f"{namespace}/{name}") for name in sorted(revisions))
    counters = r"upstream_rq_total|upstream_rq_[1-5]xx|grpc\.inference\.GRPCInferenceService\.ModelInfer\.\d+"
    return rf"^cluster\.({names})/(mirror-)?(http|grpc)(~[0-9]+)?\.({counters})$"


def _rows(page: str) -> Iterable[Row]:
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            # The parser gives every counter the suffix that OpenMetrics asks for, whatever the page says.
            yield sample.name.removesuffix("_total"), sample.labels, sample.value
