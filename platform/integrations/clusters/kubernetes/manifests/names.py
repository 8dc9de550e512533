"""Names, labels and annotations of the driver's objects. Pure."""

from collections.abc import Mapping
from typing import Any

from integrations.clusters.base import CompanionKind, Desired, DesiredRevision

Manifest = dict[str, Any]

SERVICE = "fairlead/service"
REVISION = "fairlead/revision"
TRANSFORMER = "fairlead/transformer"
"""On the objects of a revision's transformer, instead of `fairlead/revision`."""
EXPLAINER = "fairlead/explainer"
"""On the objects of a revision's explainer, instead of `fairlead/revision`."""
COMPANION_LABELS = {CompanionKind.TRANSFORMER: TRANSFORMER, CompanionKind.EXPLAINER: EXPLAINER}
EGRESS = "fairlead/egress"
"""On the pods of a revision whose model may open connections: for NetworkPolicies of the cluster's."""
JOB = "fairlead/job"
"""On a Job and its pod: its name."""
REPLAY = "fairlead/replay"
"""On the objects of a replay: its number within its service."""
GENERATION = "fairlead/generation"
LEAVING = "fairlead/leaving"
RESTART = "fairlead/restart-number"
MODEL_VERSION = "fairlead/model-version"
PREVIEW = "fairlead/preview"
"""On a service's HTTPRoute: the revision that answers at the preview address."""
MATCH = "fairlead/match"
"""On a service's HTTPRoute: the groups whose requests are a revision's, by its name."""
OWN = "fairlead/own-replicas"
"""On the HTTPRoute of a service in a pool: who answers, as `routes/own_replicas.py` calls it."""
OWN_SINCE = "fairlead/own-replicas-since"
"""Beside it: Unix seconds since which the routes ask for that."""
CATALOG = "fairlead/catalog"
"""On the ConfigMaps with the catalog of a pool: its name."""
APPLIED = "fairlead/applied"
"""The digest of the manifest applied last."""
SLEPT = "fairlead/slept-at"
"""On a Deployment: when its revision went to sleep last, in Unix seconds; with 0 replicas it is asleep."""
CONFIRMED = "fairlead/confirmed"
"""On a service's HTTPRoute: the routing that the gateway confirmed before the route was changed."""

SERVICE_METADATA = "fairlead-service"
"""Metadata of gRPC calls, and a header for replicas of a pool: `<namespace>/<service>`."""
HTTP_PORT, GRPC_PORT, METRICS_PORT = 8000, 8001, 8002
_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED = {_MANAGED_BY: "fairlead"}
"""The labels of all objects of the driver, and of those that Kubernetes derives from them."""


def backend(revision: DesiredRevision) -> str:
    """Return the name of the Service that takes a revision's requests: its transformer's where it has one."""
    kind = CompanionKind.TRANSFORMER
    return companion_name(revision.name, kind) if kind in revision.companions else revision.name


def explain_backend(revision: DesiredRevision) -> str:
    """Return the name of the Service that takes a revision's explain requests: its explainer's where it has one."""
    kind = CompanionKind.EXPLAINER
    return companion_name(revision.name, kind) if kind in revision.companions else backend(revision)


def companion_name(revision: str, kind: CompanionKind) -> str:
    """Return the name of the objects of a revision's companion."""
    return f"{revision}-{kind}"


def companion_of(name: str) -> CompanionKind | None:
    """Return the kind of companion whose objects have this name; None for a revision's own."""
    return next((kind for kind in CompanionKind if name.endswith(f"-{kind}")), None)


def revision_of(backend: str) -> str:
    """Return the revision whose requests a Service takes; revisions end with their number."""
    kind = companion_of(backend)
    return backend if kind is None else backend.removesuffix(f"-{kind}")


def deployment_of(labels: Mapping[str, str]) -> str:
    """Return the Deployment of a pod, or of a slice of its Service, by its labels; empty without one."""
    for kind, label in COMPANION_LABELS.items():
        if label in labels:
            return companion_name(labels[label], kind)
    return labels.get(REVISION, "")


def owner_of(labels: Mapping[str, str]) -> str:
    """Return the revision that an object belongs to by its labels; empty for an object of the service."""
    return next((labels[label] for label in (REVISION, *COMPANION_LABELS.values()) if label in labels), "")


def endpoints_of(labels: Mapping[str, str]) -> str:
    """Return whose endpoints a slice has: a Deployment's, or all of a pool's."""
    return deployment_of(labels) or replicas_name(labels.get(SERVICE, ""))


def ledger_name(service: str) -> str:
    """Return the name of the ConfigMap that owns all objects of a service and keeps its generation."""
    return f"fairlead-{service}"


def no_endpoints_name(service: str) -> str:
    """Return the name of the Service without endpoints, for requests that no revision may answer yet."""
    return f"fairlead-{service}"


def match_route(service: str, index: int) -> str:
    """Return the name of the routes of a group, which has several where its alternatives do not fit one."""
    return f"{service}-match" if index == 0 else f"{service}-match-{index + 1}"


def tap_name(service: str) -> str:
    """Return the name of the ConfigMap with the shares of a service's taps; its dot keeps it apart from ledgers."""
    return f"fairlead-{service}.tap"


def pool_of(revision: DesiredRevision) -> str:
    """Return the name of the pool whose replicas answer for a revision; empty where it has replicas of its own."""
    return revision.pool.rpartition("/")[2]


def pool_namespace(revision: DesiredRevision) -> str:
    """Return the namespace of that pool; empty as its name is."""
    return revision.pool.rpartition("/")[0]


def pool_at(pool: str, namespace: str) -> tuple[str, str]:
    """Return namespace and name of the pool of an entry, which names a namespace only where it is another one."""
    found, _, name = pool.rpartition("/")
    return found or namespace, name


def replicas_name(pool: str) -> str:
    """Return the name of the Service of all replicas of a pool, of whichever revision."""
    return f"{pool}-replicas"


def catalog_name(pool: str) -> str:
    """Return the beginning of the names of a pool's catalog; its dot keeps it apart from ledgers."""
    return f"fairlead-{pool}.catalog"


def service_labels(service: str) -> dict[str, str]:
    """Return the labels of all objects of a service."""
    return {**MANAGED, "app.kubernetes.io/part-of": service, SERVICE: service}


def revision_labels(service: str, revision: str) -> dict[str, str]:
    """Return the labels of all objects of a revision."""
    return {**service_labels(service), "app.kubernetes.io/name": revision, REVISION: revision}


def selector(service: str, revision: str) -> dict[str, str]:
    """Return the selector labels of a revision's pods; they never change, as a Deployment's may not."""
    return {SERVICE: service, REVISION: revision}


def quantity(value: float) -> str:
    """Return a number as Kubernetes writes it back: whole, or in thousandths."""
    thousandths = round(value * 1000)
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)


def manifest(
    api_version: str, kind: str, desired: Desired, name: str, labels: dict[str, str], **parts: Any
) -> Manifest:
    """Return an object of the service's namespace."""
    metadata = {"name": name, "namespace": desired.namespace, "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}
