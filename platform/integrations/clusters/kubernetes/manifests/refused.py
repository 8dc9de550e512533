"""Unsupported fields of Desired: this driver refuses them by name, and so every new one. Pure."""

from dataclasses import MISSING, Field, fields
from typing import Any

from common.errors import InvalidInput
from integrations.clusters.base import Desired, DesiredRevision, Limits
from integrations.clusters.kubernetes.manifests import pools

_OF_SERVICE = {
    "namespace",
    "service",
    "generation",
    "revisions",
    "preview",
    "drift",
    "request_timeout_s",
    "rolling",
    "access",
    "cors",
    "limits",
    "shared_with",
    "takes_feedback",  # no gateway of a cluster has an intake of labels: the control plane takes them
}
_OF_LIMITS = {"requests_per_second", "caller_requests_per_second"}
_OF_REVISION = {
    "name",
    "model_name",
    "model_version",
    "artifact_uri",
    "artifact_digest",
    "artifact_origin",
    "artifact_bytes",
    "replicas",
    "weight_percent",
    "model_config",
    "env",
    "secret_env",
    "is_code",
    "egress",
    "resources",
    "mirror_percent",
    "match",
    "restart_number",
    "max_concurrent_requests",
    "autoscaling",
    "patches",
    "logger",
    "transformer",
    "explainer",
    "tap",
    "arrangement",
    "pod",
    "custom",
    "is_pool",
    "pool",
    "pool_memory_bytes",
    "pool_copies",  # not done there
    "own_replicas",
    "own_since",
    "pod_templates",
    "has_served",
    "may_sleep",
    "slept_at",
}


_ROWS = (
    "rows a minute are counted on the local cluster only, from its gateway's access log; leave the field out, or use "
    "requestsPerSecond"
)
# Added to a field's refusal: why it is permanent, and what can be done instead.
_INSTEAD = {
    "rows_per_minute": f"rowsPerMinute cannot be kept on Kubernetes: {_ROWS}",
    "caller_rows_per_minute": f"perCaller.rowsPerMinute cannot be kept on Kubernetes: {_ROWS}",
    "affinity": (
        "sessionAffinity cannot be kept on Kubernetes: a session of the Gateway API stays with its pod even at weight "
        "0, so that a rollback would not take clients away from the canary; leave it out, or give the first clients "
        "the canary by the match of a step"
    ),
    "caller_concurrent_requests": (
        "perCaller.concurrentRequests cannot be kept on Kubernetes: each replica would need its share with every "
        "request, which changes with the number of replicas, and a route of the Gateway API adds fixed headers only; "
        "leave it out, or limit the callers by perCaller.requestsPerSecond"
    ),
    "request_bytes": (
        "requestBytes cannot be kept on Kubernetes: Envoy Gateway limits bodies on whole routes, by holding each "
        "request back until it is complete, so that gRPC streams would get no answer; leave it out"
    ),
}


def refuse_unknown(desired: Desired) -> None:
    """Raise InvalidInput, naming the field, where `desired` needs what the driver cannot do."""
    _refuse(desired, _OF_SERVICE, desired.service)
    _refuse(desired.limits, _OF_LIMITS, f"spec.limits of {desired.service}")
    for revision in desired.revisions:
        _refuse(revision, _OF_REVISION, revision.name)
        if revision.model_name != desired.service:
            raise InvalidInput(f"revision {revision.name} serves {revision.model_name}, not {desired.service}")
    pools.refuse_impossible(desired)


def _refuse(part: Desired | DesiredRevision | Limits, known: set[str], name: str) -> None:
    for field in fields(part):
        if field.name not in known and getattr(part, field.name) != _default(field):
            why = _INSTEAD.get(field.name, f"{field.name} cannot be honoured on Kubernetes yet")
            raise InvalidInput(f"{name}: {why}", field=field.name)


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()
