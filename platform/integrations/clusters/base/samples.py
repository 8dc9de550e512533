"""Request counters of gateways and replicas, as the analysis reads them. Standard library only."""

from dataclasses import dataclass
from typing import NamedTuple


class BatchTime(NamedTuple):
    """Executions of like size: at most `size` rows each, and more than half as many; the time of each counted once."""

    size: int
    rows: int
    duration_us: int


class ModelTime(NamedTuple):
    """What one model, `<namespace>.<service>`, takes of a pool's replica, all its versions together.

    Attributes:
        busy_us: microseconds of computation, cumulative.
        memory_bytes: at this moment.
    """

    model: str
    busy_us: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One process's counters for one revision, cumulative since `started_at`.

    A replica counts the requests of the service's model; an ensemble's steps are part of these.

    Attributes:
        source: "gateway", "mirror" (the gateway again, for the copies that a shadow got) or the replica's name.
        started_at: Unix seconds; a changed value means that the counters began again.
        requests: finished inference requests with any outcome; at the gateway what clients saw over HTTP and gRPC, and
            of a mirror what clients would have seen.
        client_errors: HTTP 4xx; gRPC statuses that blame the request.
        server_errors: HTTP 5xx; gRPC statuses that blame the server, including those the gateway made itself.
        latency_edges_us: upper bucket edges without +Inf; empty for the gateway.
        latency_counts: requests per bucket, not cumulative, one more than there are edges.
        in_flight: requests accepted and not yet answered, at this moment; None for the gateway.
        queue_us: microseconds that the requests without error waited before the model ran, summed up.
        batches: executions by size; empty for the gateway.
        replaces_gateway: of a replica: its requests and errors are all that is known of what clients saw, since the
            cluster's gateway does not count per revision.
        restarts: of a replica that replaces the gateway's counts: how often its process restarted.
        models: of a pool's replica: its models that have computed; empty for others.
    """

    source: str
    revision: str
    started_at: float
    requests: int
    client_errors: int
    server_errors: int
    latency_edges_us: tuple[float, ...] = ()
    latency_counts: tuple[int, ...] = ()
    in_flight: int | None = None
    queue_us: int = 0
    batches: tuple[BatchTime, ...] = ()
    replaces_gateway: bool = False
    restarts: int = 0
    models: tuple[ModelTime, ...] = ()
