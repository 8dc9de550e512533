"""One of everything that driver and agent tell each other; as release 0.1.0 had it, and never changed."""

from integrations.clusters.base import (
    Autoscaling,
    Component,
    Desired,
    DesiredRevision,
    HeaderMatch,
    Logged,
    Logger,
    MatchKind,
    Observed,
    ObservedReplica,
    ObservedRevision,
    ReplicaPhase,
    Resources,
    SessionAffinity,
    Tap,
)
from integrations.clusters.local.files import ClusterStatus, Order

ORDER = Order(
    Desired(
        "vision",
        "digits",
        7,
        (
            DesiredRevision(
                name="digits-00001",
                model_name="digits",
                model_version="3",
                artifact_uri="file:///artifacts/a",
                artifact_digest="sha256:" + "0" * 64,
                replicas=2,
                weight_percent=80,
                model_config={"dynamic_batching": {"preferred_batch_size": [4]}},
                env={"A": "b"},
                is_code=True,  # what an earlier release does not say is left to the agent
                egress=None,
                resources=Resources(0.5, 1 << 30),
                autoscaling=Autoscaling(4, {"concurrency": 7.5}),
                logger=Logger("http://receiver/", Logged.REQUEST),
            ),
            DesiredRevision(
                name="digits-00002",
                model_name="digits",
                model_version="4",
                artifact_uri="file:///artifacts/b",
                artifact_digest="sha256:" + "1" * 64,
                replicas=1,
                weight_percent=20,
                is_code=True,
                egress=None,
                match=(HeaderMatch("x-group", MatchKind.ANY_OF, ("beta", "in-house")),),
                tap=Tap(0.25),
            ),
        ),
        affinity=SessionAffinity("digits-00001", cookie="session", cookie_ttl_s=60),
    )
)
OBSERVED = Observed(
    "vision",
    "digits",
    7,
    (
        ObservedRevision(
            "digits-00001",
            80,
            (ObservedReplica("digits-00001-0", ReplicaPhase.READY, 1, 5.5, "http://127.0.0.1:1/metrics", "why"),),
            "because",
            7.5,
        ),
        ObservedRevision("digits-00002", 20, match=(HeaderMatch("x-group", MatchKind.PREFIX, ("beta",)),)),
    ),
    "http://127.0.0.1:2/stats",
    "a sentence",
)
STATUS = ClusterStatus(1_700_000_000.5, 42, "http://127.0.0.1:8090", (Component("gateway", ready=True, restarts=1),))
