"""What every cluster driver agrees on: the words between the reconciler and the place where models run.

The reconciler says what should be (`Desired`), a driver makes it so and tells what is (`Observed`). Values here are
plain and frozen, so that decisions over them are pure functions and a driver can put them into a file or a manifest.
Standard library only.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

PREVIEW_SUFFIX = "-preview"
"""A service's preview is reached as the service is, under its name with this at the end."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What one replica asks for; None leaves it to the cluster."""

    cpu_cores: float | None = None
    memory_bytes: int | None = None


class MatchKind(StrEnum):
    """How a header's value is compared: with a whole value, with a beginning, with several whole values."""

    EXACT = "exact"
    PREFIX = "prefix"
    ANY_OF = "anyOf"


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """What one header of a request, or entry of a gRPC call's metadata, has to be.

    Attributes:
        header: its name in lower case.
        values: one value; several only for ANY_OF.
    """

    header: str
    kind: MatchKind
    values: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as a part of a sentence, such as `x-group: beta`."""
        star = "*" if self.kind is MatchKind.PREFIX else ""
        return f"{self.header}: {' or '.join(self.values)}{star}"


@dataclass(frozen=True, slots=True)
class SessionAffinity:
    """By what requests belong together, so that the same revision answers them: a header's value, or a cookie's.

    Attributes:
        revision: the one whose share rises; a session that it answers stays with it while it does.
        header: its name in lower case; empty where it is a cookie.
        cookie: its name; the gateway gives one to whoever has none.
        cookie_ttl_s: for how long a client keeps the cookie.
    """

    revision: str
    header: str = ""
    cookie: str = ""
    cookie_ttl_s: int = 0


@dataclass(frozen=True, slots=True)
class Tap:
    """Which of a revision's inference requests are recorded with their answers, for `ClusterDriver.exchanges`.

    A request is in the share by its `x-request-id` alone, so that revisions which see the same requests record the
    same ones of them.
    """

    share_percent: float


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """How far above `replicas` a cluster's own autoscaler, where it has one, may follow the load.

    Attributes:
        most: the highest number of replicas.
        targets: what each replica should have of `concurrency`, `rps` or `avg_time_queue_ms`.
    """

    most: int
    targets: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DesiredRevision:
    """One immutable revision as the cluster should run it now.

    Attributes:
        name: DNS label, unique within the namespace, such as `digits-00002`.
        model_name: what V2 clients ask for: the service's name.
        model_version: the registry's version number in decimal; V2's `model_version`.
        artifact_uri: folder with the model files (`file:///…` on the local driver).
        artifact_digest: digest the files must have.
        replicas: how many should run; 0 keeps the revision known but stopped.
        weight_percent: share of requests it should get, 0..100; over the ready revisions of a service they sum to 100.
        model_config: fields of a Triton ModelConfig laid over what the artifact brings; empty leaves it alone.
        mirror_percent: share of the service's inference requests of which it should get a copy, 0..100; nobody gets
            the answers to copies.
        match: requests that match all of these go to it, whatever its share; empty gives it none but its share.
        max_concurrent_requests: so many requests at once in a replica, further ones wait; 0 is no limit.
        restart_number: where it rises, every replica is replaced by one that begins anew, one after the other.
        autoscaling: None where the number of replicas does not follow the load.
        tap: which requests to record; None for none. It comes and goes without a restart.
    """

    name: str
    model_name: str
    model_version: str
    artifact_uri: str
    artifact_digest: str
    replicas: int
    weight_percent: int
    model_config: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    resources: Resources = Resources()
    mirror_percent: int = 0
    restart_number: int = 0
    max_concurrent_requests: int = 0
    match: tuple[HeaderMatch, ...] = ()
    tap: Tap | None = None
    autoscaling: Autoscaling | None = None


@dataclass(frozen=True, slots=True)
class Desired:
    """Everything one service should have on a cluster; `generation` only rises and lower ones are ignored.

    Attributes:
        preview: the revision that answers at the service's preview address; empty where there is no such address.
        affinity: None leaves every request to chance.
    """

    namespace: str
    service: str
    generation: int
    revisions: tuple[DesiredRevision, ...]
    preview: str = ""
    affinity: SessionAffinity | None = None


class ReplicaPhase(StrEnum):
    """Where one replica is in its life."""

    STARTING = "Starting"
    READY = "Ready"
    BACKING_OFF = "BackingOff"
    DRAINING = "Draining"


@dataclass(frozen=True, slots=True)
class ObservedReplica:
    """One running (or failing) replica.

    Attributes:
        restarts: how often it was started again after it ended by itself; never falls while the replica exists.
        started_at: Unix seconds of the running process; None when none runs.
        metrics_url: where its Prometheus page is; empty until it serves.
        message: why it is not ready, or how its last process ended; one sentence.
        restart_number: its revision's when it began.
    """

    name: str
    phase: ReplicaPhase
    restarts: int = 0
    started_at: float | None = None
    metrics_url: str = ""
    message: str = ""
    restart_number: int = 0


@dataclass(frozen=True, slots=True)
class ObservedRevision:
    """One revision as it is; its percents and `match` are what the gateway confirmed, not what was asked.

    Attributes:
        message: why it gets another share than asked for, or why it cannot run; empty where all is as wanted.
        gateway_since: Unix seconds at which the gateway's counters for this revision began; None while it has none.
    """

    name: str
    weight_percent: int
    replicas: tuple[ObservedReplica, ...] = ()
    message: str = ""
    gateway_since: float | None = None
    mirror_percent: int = 0
    match: tuple[HeaderMatch, ...] = ()

    @property
    def ready_replicas(self) -> int:
        """Return how many replicas take requests."""
        return sum(replica.phase is ReplicaPhase.READY for replica in self.replicas)


@dataclass(frozen=True, slots=True)
class Observed:
    """A service as the cluster reports it; `generation` is the last one the cluster took up, 0 if none.

    Attributes:
        preview: the revision to which the gateway was seen to send what comes to the preview address; empty if none.
    """

    namespace: str
    service: str
    generation: int = 0
    revisions: tuple[ObservedRevision, ...] = ()
    gateway_stats_url: str = ""
    message: str = ""
    preview: str = ""

    def revision(self, name: str) -> ObservedRevision | None:
        """Return the named revision, or None where the cluster has none of that name."""
        return next((revision for revision in self.revisions if revision.name == name), None)


class BatchTime(NamedTuple):
    """Executions of like size: at most `size` rows each, and more than half as many; the time of each counted once."""

    size: int
    rows: int
    duration_us: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One process's counters for one revision, cumulative since `started_at`.

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
        batches: what the executions came to, by size; empty for the gateway.
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


@dataclass(frozen=True, slots=True)
class Exchange:
    """One recorded inference request and what a revision answered.

    Of a model that answers a request several times it is the first answer.

    Attributes:
        request_id: the gateway's `x-request-id`; the same in a mirrored request's exchanges with both revisions.
        model_version: that answered; empty where the answer is an error.
        at: Unix seconds at which the request came.
        request, response: in V2's JSON form, tensors' data flat in row-major order. A tensor with the parameter
            {"encoding": "base64"} has as its only element the base64 of V2's binary form instead: FP16, BF16, what is
            not finite, bytes that are no text. Of an error the response is {"error": its message}.
        error_code: gRPC's name of the error, such as INVALID_ARGUMENT; empty where it was answered.
    """

    request_id: str
    revision: str
    model_version: str
    at: float
    request: Mapping[str, Any]
    response: Mapping[str, Any]
    error_code: str = ""


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the cluster that is not a model, such as the gateway, and how often it was restarted."""

    name: str
    ready: bool
    restarts: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class Nodes:
    """What the cluster is made of."""

    components: tuple[Component, ...] = ()


class JobKind(StrEnum):
    """What a job asks the serving runtime about a model."""

    INSPECT = "inspect"
    PROFILE = "profile"


@dataclass(frozen=True, slots=True)
class Job:
    """One question about a model, answered by `python -m serving_runtime KIND DIR --json` where models run."""

    kind: JobKind
    artifact_uri: str
    timeout_s: float


@dataclass(frozen=True, slots=True)
class JobResult:
    """How a job ended: `output` is what it printed (JSON), `message` one sentence when `exit_code` is not 0."""

    exit_code: int
    output: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model version that is to answer recorded requests and serves nobody.

    Attributes:
        name: what its exchanges have as `revision`.
        timeout_s: for loading the model, and for each answer.
    """

    name: str
    model_name: str
    model_version: str
    artifact_uri: str
    model_config: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 60.0


class ClusterDriver(Protocol):
    """The verbs. All raise `common.errors.Unavailable` where the cluster cannot be reached."""

    def apply(self, desired: Desired) -> None:
        """Make the cluster work towards `desired`; returns when it is handed over, not when it is so."""

    def observe(self, namespace: str, service: str) -> Observed:
        """Return the service as it is; an unknown one has generation 0 and no revisions."""

    def exchanges(self, namespace: str, service: str, cursor: str) -> tuple[list[Exchange], str]:
        """Return some of what the service's taps recorded after `cursor`, and the cursor behind them.

        What lies before `cursor` is dropped: pass only what was kept together with what was made of the exchanges
        before it; "" at first. The same cursor again returns the same exchanges, unless they were too many to be
        kept. A call returns about 16 MiB at most; an unchanged cursor says that there is nothing more for now. What
        a tap recorded comes within about two seconds, and a minute after the tap is gone it is dropped.
        """

    def inventory(self) -> Nodes:
        """Return what the cluster is made of."""

    def run(self, job: Job) -> JobResult:
        """Run `job` to its end or its timeout."""

    def replay(self, candidate: Candidate) -> AbstractContextManager[Callable[[Exchange], Exchange]]:
        """Start the candidate where models run, out of reach of every client, and end it when the block is left.

        What the block is given answers a recorded request once more. It ends too when its caller is killed. Both raise
        `common.errors.InvalidInput` where the runtime cannot serve the candidate, and `Unavailable` where it ended or
        did not answer in time.
        """

    def check_config(self, fields: Mapping[str, object]) -> None:
        """Raise InvalidInput, naming the field, where the runtime takes no model with these ModelConfig fields."""

    def delete(self, namespace: str, service: str, generation: int) -> None:
        """Take the service off the cluster; deleting an unknown one is no error."""
